"""What a check is asked for: the options and the configuration, put together."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.cli.baseline import with_baseline
from tensortrail.cli.selection import UnknownRule, codes_of, noted, selected
from tensortrail.config import Config, ConfigError, load
from tensortrail.files import read, within

if TYPE_CHECKING:
    from tensortrail.analyzer.choosing.profile import Profile


def refuse_mixed_up(options: Namespace, paths: list[str]) -> None:
    if options.add_ignores and (options.fix or options.diff):
        raise ConfigError("--add-ignores cannot be combined with --fix or --diff: run them in turn")
    if options.write_baseline and (options.fix or options.diff or options.add_ignores):
        raise ConfigError(
            "--write-baseline cannot be combined with --fix, --diff or --add-ignores: "
            "run them in turn"
        )
    change = "--changed-only" if options.changed_only else "--new-since"
    of_a_change = options.changed_only or options.new_since
    if options.write_baseline and ("-" in paths or options.with_trail or of_a_change):
        raise ConfigError(
            "--write-baseline takes whole files as they are: "
            f"leave out - (standard input), --with-trail and {change}"
        )
    if of_a_change and "-" in paths:
        raise ConfigError(f"{change} names files: leave out - (standard input)")
    if options.new_since and (options.changed_only or options.baseline is not None):
        raise ConfigError(
            "--new-since reports what is new in changed files: "
            "leave out --changed-only and --baseline"
        )
    if options.add_ignores and "-" in paths:
        raise ConfigError("--add-ignores writes files: name one instead of - (standard input)")
    if options.stdin_filename and paths != ["-"]:
        raise ConfigError("--stdin-filename needs - (standard input) as the only path")
    if options.unsafe_fixes and not (options.fix or options.diff):
        raise ConfigError("--unsafe-fixes needs --fix, or --diff to show what would change")
    if options.jobs is not None and options.jobs < 0:
        raise ConfigError(f"--jobs must be 0 or more, not {options.jobs}")


def paths_of(options: Namespace) -> list[str]:
    named: list[str] = list(options.paths)
    if options.files_from is None:
        return named or ["."]
    try:
        listed = os.fsdecode(read(options.files_from)).splitlines()
    except OSError as error:
        raise ConfigError(
            f"--files-from {options.files_from}: {error.strerror or error}"
        ) from error
    return [*named, *filter(None, listed)]


def configuration(options: Namespace, first_path: str) -> Config:
    start = first_path if os.path.isdir(first_path) else os.path.dirname(first_path) or "."
    config = Config() if options.isolated else load(options.config, start)
    given = {
        "select": listed(options.select),
        "ignore": config.ignore + listed(options.ignore) if options.ignore else None,
        "extend_select": config.extend_select + listed(options.extend_select)
        if options.extend_select
        else None,
        "exclude": config.exclude + listed(options.exclude) if options.exclude else None,
        "output_format": options.output_format,
        "fail_on": options.fail_on,
        "notes": options.notes,
        "cache_dir": options.cache_dir,
        "jobs": options.jobs,
        "unsafe_fixes": options.unsafe_fixes,
        "siblings": False if options.no_siblings else None,
        "respect_gitignore": False if options.no_respect_gitignore else None,
    }
    if options.select is None:
        del given["select"]
    asked = config._replace(**{name: value for name, value in given.items() if value is not None})
    if not options.new_since:
        return asked
    from tensortrail.cli.new_since import wanting_all

    return wanting_all(asked)


def requested(config: Config, options: Namespace, paths: list[str]) -> CheckRequest:
    stdin = None
    if paths == ["-"]:
        name = options.stdin_filename or "<stdin>"
        stdin = (name, sys.stdin.buffer.read())
    elif "-" in paths:
        raise ConfigError("- (standard input) cannot be combined with other paths")
    fresh = options.no_cache or options.profile_rules
    request = CheckRequest(
        paths=tuple(paths),
        **_rules(config, options),
        exclude=config.exclude,
        respect_gitignore=config.respect_gitignore,
        cache_dir=None if fresh else _cache_dir(config, options),
        jobs=1 if options.profile_rules else config.jobs,
        siblings=config.siblings,
        syntax=options.syntax,
        stdin=stdin,
        root=config.root,
        profile=_profile() if options.profile_rules else None,
        only=_changed(options, paths),
    )
    if not options.new_since:
        return with_baseline(request, config, options)
    from tensortrail.cli.new_since import with_change

    return with_change(request, options.new_since, _folder(paths))


def _rules(config: Config, options: Namespace) -> dict[str, Any]:
    try:
        return {
            "codes": selected(config),
            "noted": noted(config),
            "per_file_ignores": {
                pattern: frozenset(codes_of(codes))
                for pattern, codes in config.per_file_ignores.items()
            },
        }
    except UnknownRule as error:
        typed = (options.select, options.ignore, options.extend_select)
        if not config.file or any(error.selector in listed(each) for each in typed):
            raise
        raise ConfigError(f"{config.file}: {error}") from error


def _changed(options: Namespace, paths: list[str]) -> frozenset[str] | None:
    if not options.changed_only:
        return None
    from tensortrail.cli.changed import Change

    return Change("--changed-only", options.changed_only, _folder(paths)).files_now()


def _folder(paths: list[str]) -> str:
    """In which git is asked."""
    first = paths[0] if paths else ""
    return first if os.path.isdir(first) else os.path.dirname(first)


def _profile() -> Profile:
    from tensortrail.analyzer.choosing.profile import Profile

    return Profile()


def _cache_dir(config: Config, options: Namespace) -> str:
    """Whoever runs the command may name any folder; a checkout only one of its own."""
    folder = os.path.normpath(os.path.join(config.root, config.cache_dir))
    if options.cache_dir is None and not within(
        os.path.abspath(folder), os.path.abspath(config.root)
    ):
        raise ConfigError(
            f"{config.file}: cache-dir = {config.cache_dir!r} is outside the project: "
            "use a folder in it, or name that one with --cache-dir"
        )
    return folder


def listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()


def shown(config: Config, paths: list[str]) -> str:
    lines = [f"paths = {paths!r}", f"configuration = {config.file or 'none'!r}"]
    lines += [
        f"{each.replace('_', '-')} = {getattr(config, each)!r}"
        for each in config._fields
        if each != "file"
    ]
    codes = selected(config)
    chosen = codes_of(["DEFAULT"]) if codes is None else codes
    return "\n".join([*lines, f"rules = {', '.join(sorted(chosen))}"])
