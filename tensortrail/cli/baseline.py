"""`--baseline` and `--write-baseline`: the findings of today are accepted, new ones are not."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tensortrail.config import Config, ConfigError
from tensortrail.files import within
from tensortrail.plurals import counted

if TYPE_CHECKING:
    from tensortrail.analyzer.choosing.baseline import Baseline, Entry
    from tensortrail.analyzer.choosing.request import CheckRequest, CheckResult
    from tensortrail.findings import Finding

_SHOWN = 10


def path_of(config: Config, options: Namespace) -> str:
    """Where the baseline lies; "" if there is none. A checkout names only files of its own."""
    if options.baseline is not None:
        return str(options.baseline)
    if config.baseline:
        path = os.path.normpath(os.path.join(config.root, config.baseline))
        if not within(os.path.abspath(path), os.path.abspath(config.root)):
            raise ConfigError(
                f"{config.file}: baseline = {config.baseline!r} is outside the project: "
                "use a file in it, or name that one with --baseline"
            )
        return path
    if options.write_baseline:
        from tensortrail.analyzer.choosing.baseline import DEFAULT_NAME

        return os.path.join(config.root, DEFAULT_NAME)
    return ""


def with_baseline(request: CheckRequest, config: Config, options: Namespace) -> CheckRequest:
    path = path_of(config, options)
    if not path:
        return request
    return request._replace(baseline=_loaded(path, bool(options.write_baseline)))


def write_baseline(
    request: CheckRequest, result: CheckResult, findings: Sequence[Finding], configured: bool
) -> str:
    """Accept all that was found; says what was done, and what to do with it."""
    assert request.baseline is not None
    before = request.baseline
    new = before.renewed([*findings, *result.known], _judged(request, result, before))
    try:
        new.save()
    except OSError as error:
        raise ConfigError(f"{before.path}: cannot be written: {error.strerror or error}") from error
    told = f"Wrote {counted(new.total, 'finding')} to {_shown(new.path)}."
    if configured:
        return told
    name = os.path.basename(new.path)
    return (
        f'{told}\nFrom now on: --baseline {_shown(new.path)}, or baseline = "{name}" '
        "in [tool.tensortrail]"
    )


def shrunk(request: CheckRequest, result: CheckResult) -> Iterator[str]:
    """Take out what is found no more; says so."""
    before = request.baseline
    if before is None:
        return
    after = before.renewed(result.known, _judged(request, result, before))
    gone = [each for each in sorted(before.entries) if each not in after.entries]
    count = before.total - after.total
    if not count and not gone:
        return
    what = f"{_shown(before.path)}: {counted(count, 'stale finding')}"
    try:
        after.save()
    except OSError as error:
        yield f"{what}, and the file cannot be written: {error.strerror or error}"
    else:
        yield f"{what} removed" if count else f"{_shown(before.path)}: updated for renamed files"
    for entry in gone[:_SHOWN]:
        yield f"  {entry.code} {entry.file}: {entry.source}".rstrip(": ")
    if gone[_SHOWN:]:
        yield f"  and {len(gone) - _SHOWN} more"


def _loaded(path: str, to_be_written: bool) -> Baseline:
    from tensortrail.analyzer.choosing.baseline import BadBaseline, Baseline, load

    try:
        return load(path)
    except FileNotFoundError as error:
        if to_be_written:
            return Baseline(path)
        raise ConfigError(
            f"{_shown(path)}: no such baseline; --write-baseline makes one"
        ) from error
    except (OSError, BadBaseline) as error:
        told = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{_shown(path)}: cannot be read: {told}") from error


def _judged(
    request: CheckRequest, result: CheckResult, baseline: Baseline
) -> Callable[[Entry], bool]:
    """Whether this check would have found what the entry stands for."""
    from tensortrail.analyzer.choosing.own_findings import OWN
    from tensortrail.analyzer.choosing.rule_index import listed
    from tensortrail.findings import Severity

    rules = listed()
    chosen = request.codes
    if chosen is None:
        chosen = frozenset(code for code, rule in rules.items() if rule.default)
    looked_at = _looked_at(request, result)

    def judged(entry: Entry) -> bool:
        if entry.code not in chosen and entry.code not in OWN:
            return False
        if not looked_at(baseline.file_of(entry)):
            return False
        silent_notes = entry.severity == Severity.NOTE.value and entry.code in rules
        return not silent_notes or rules[entry.code].load().notes or request.wants_notes(entry.code)

    return judged


def _looked_at(request: CheckRequest, result: CheckResult) -> Callable[[str], bool]:
    """Whether the check read all of a file, or would have if the file were still there."""
    from tensortrail.analyzer.choosing.own_findings import CRASHED, IN_PART, UNREADABLE

    broken = {
        os.path.abspath(each.site.file)
        for each in (*result.findings, *result.known)
        if each.code in (UNREADABLE, CRASHED, IN_PART)
    }
    files = {os.path.abspath(each) for each in result.files} - broken
    folders = [os.path.abspath(each) for each in request.paths if os.path.isdir(each)]

    def looked_at(file: str) -> bool:
        file = os.path.normpath(file)
        gone = not os.path.exists(file) and request.only is None
        return file in files or (gone and any(within(file, each) for each in folders))

    return looked_at


def _shown(path: str) -> str:
    return os.path.relpath(path) if within(os.path.abspath(path), os.getcwd()) else path
