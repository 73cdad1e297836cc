"""`tensortrail check`: find, fix, report."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from tensortrail.analyzer.choosing.request import CheckRequest, CheckResult
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.reading.python_files import shown as shown_to_people
from tensortrail.cli.check_report import reader, report
from tensortrail.cli.console import fail, say, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.cli.files_left_out import notes, why_nothing
from tensortrail.cli.request import configuration, paths_of, refuse_mixed_up, requested, shown
from tensortrail.cli.selection import some_read_code, why_no_rule
from tensortrail.config import Config, counts
from tensortrail.plurals import counted

if TYPE_CHECKING:
    from tensortrail.cli.check_fixes import Outcome
    from tensortrail.findings import Finding


def run(options: Namespace) -> int:
    paths = paths_of(options)
    if options.show_places:
        from tensortrail.cli.places import show_places

        return show_places(paths)
    refuse_mixed_up(options, paths)
    config = configuration(options, paths[0] if paths else ".")
    if options.show_settings:
        write_text(shown(config, paths), sys.stdout)
        return CLEAN
    request = requested(config, options, paths)
    if not (request.syntax or some_read_code(request.codes)):
        fail("no rule is left that reads code", *why_no_rule(config))
        return FAILED
    result = _checked(request)
    if result.missing:
        for path in result.missing:
            fail(f"no such file or directory: {path}", *_meant_as_rule(path, options))
        return FAILED
    if not (result.files or result.pointers or options.allow_empty or _of_a_change(options)):
        fail(f"no Python files found in {', '.join(paths)}", *why_nothing(result))
        return FAILED
    _say_all(notes(result))
    if request.profile is not None:
        _say_all(request.profile.table().splitlines())
    return _finish(request, result, config, options)


def _of_a_change(options: Namespace) -> bool:
    """Which may have changed no Python file."""
    return bool(options.changed_only or options.new_since)


def _meant_as_rule(path: str, options: Namespace) -> Iterator[str]:
    """As in `--select OFF DEV`."""
    from tensortrail.cli.selection import UnknownRule, codes_of

    for name in ("select", "ignore", "extend_select"):
        if getattr(options, name):
            with suppress(UnknownRule):
                codes_of([path])
                option = f"--{name.replace('_', '-')}"
                yield f"rules are separated by commas: {option} {getattr(options, name)},{path}"
                return


def _finish(request: CheckRequest, result: CheckResult, config: Config, options: Namespace) -> int:
    findings = result.findings
    if options.with_trail:
        from tensortrail.cli.with_trail import weighed

        findings = weighed(findings, options.with_trail, request)
    if options.write_baseline:
        from tensortrail.cli.baseline import write_baseline

        write_text(write_baseline(request, result, findings, bool(config.baseline)), sys.stdout)
        return CLEAN
    if request.baseline and not (options.diff or request.stdin or options.new_since):
        from tensortrail.cli.baseline import shrunk

        _say_all(shrunk(request, result))
    if options.add_ignores:
        from tensortrail.cli.check_fixes import add_ignores

        told, all_changed = add_ignores(result, findings)
        _say_all(told)
        return CLEAN if all_changed else FOUND
    if options.fix or options.diff:
        return _mend(request, findings, result, config, options)
    report(request, findings, 0, result, config, options)
    return _code(findings, config, options) if _some_were_read(request, result, options) else FAILED


def _some_were_read(request: CheckRequest, result: CheckResult, options: Namespace) -> bool:
    """Else says why no file of a folder was."""
    if not result.findings or options.exit_zero or options.allow_empty or _of_a_change(options):
        return True
    from tensortrail.cli.newer_files import MEND, why_none_was_read

    why = why_none_was_read(result, request.paths)
    if why:
        fail(why, MEND)
    return not why


def _mend(
    request: CheckRequest,
    findings: tuple[Finding, ...],
    result: CheckResult,
    config: Config,
    options: Namespace,
) -> int:
    from tensortrail.cli import check_fixes

    if request.stdin is not None:
        outcome = check_fixes.fix_buffer(request, findings, config.unsafe_fixes)
    else:
        outcome = check_fixes.fix(request, result, findings, config.unsafe_fixes, not options.diff)
    _say_all(outcome.messages)
    if options.diff:
        _show_diff(outcome, request, config)
        return FOUND if outcome.diff and not options.exit_zero else CLEAN
    if request.stdin is not None:
        sys.stdout.buffer.write(outcome.stdin)  # as it is: any encoding, any line end
    else:
        report(request, outcome.left, outcome.count, result, config, options)
    return _code(outcome.left, config, options)


def _show_diff(outcome: Outcome, request: CheckRequest, config: Config) -> None:
    from tensortrail.cli.newer_files import told_together
    from tensortrail.cli.unfixed_findings import named, unfixed

    write_text(outcome.diff, sys.stdout) if outcome.diff else None
    found = told_together(outcome.left)
    say(f"{counted(outcome.count, 'finding')} would be fixed, {len(found)} left")
    left = shown_to_people(found, reader(request))
    _say_all(f"  {line}" for line in named(left, unfixed(bool(config.unsafe_fixes))))


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def _code(findings: Iterable[Finding], config: Config, options: Namespace) -> int:
    found = any(counts(each.severity.value, config.fail_on) for each in findings)
    return FOUND if found and not options.exit_zero else CLEAN


def _checked(request: CheckRequest) -> CheckResult:
    if not sys.stderr.isatty():
        return check(request)
    from tensortrail.cli.progress import LateProgress

    with LateProgress() as progress:
        return check(request, progress)
