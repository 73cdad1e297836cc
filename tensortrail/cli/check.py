"""`tensortrail check`: find, fix, report."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from tensortrail import __version__
from tensortrail.analyzer.choosing.request import CheckRequest, CheckResult
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.reading.python_files import shown as shown_to_people
from tensortrail.cli.console import counted, fail, say, wants_color, width, write_output, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.cli.left_out import notes, why_nothing
from tensortrail.cli.request import configuration, paths_of, refuse_mixed_up, requested, shown
from tensortrail.cli.selection import some_read_code, why_no_rule
from tensortrail.config import SEVERITIES, Config

if TYPE_CHECKING:
    from tensortrail.cli.fixing import Outcome
    from tensortrail.findings import Finding, RuleInfo


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
    if not (result.files or result.pointers or options.allow_empty or options.changed_only):
        fail(f"no Python files found in {', '.join(paths)}", *why_nothing(result))
        return FAILED
    _say_all(notes(result))
    if request.profile is not None:
        _say_all(request.profile.table().splitlines())
    return _finish(request, result, config, options)


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
    if request.baseline and not (options.diff or request.stdin):
        from tensortrail.cli.baseline import shrunk

        _say_all(shrunk(request, result))
    if options.add_ignores:
        from tensortrail.cli.fixing import add_ignores

        _say_all(add_ignores(result, findings))
        return CLEAN
    if options.fix or options.diff:
        return _mend(request, findings, result, config, options)
    _report(request, findings, 0, result, config, options)
    return _code(findings, config, options)


def _mend(
    request: CheckRequest,
    findings: tuple[Finding, ...],
    result: CheckResult,
    config: Config,
    options: Namespace,
) -> int:
    from tensortrail.cli import fixing

    if request.stdin is not None:
        outcome = fixing.fix_buffer(request, findings, config.unsafe_fixes)
    else:
        outcome = fixing.fix(request, result, findings, config.unsafe_fixes, not options.diff)
    _say_all(outcome.messages)
    if options.diff:
        _show_diff(outcome, request, config)
        return FOUND if outcome.diff and not options.exit_zero else CLEAN
    if request.stdin is not None:
        sys.stdout.buffer.write(outcome.stdin)  # as it is: any encoding, any line end
    else:
        _report(request, outcome.left, outcome.count, result, config, options)
    return _code(outcome.left, config, options)


def _show_diff(outcome: Outcome, request: CheckRequest, config: Config) -> None:
    from tensortrail.cli.left_findings import named, unfixed
    from tensortrail.cli.newer_files import told_together

    write_text(outcome.diff, sys.stdout) if outcome.diff else None
    found = told_together(outcome.left)
    say(f"{counted(outcome.count, 'finding')} would be fixed, {len(found)} left")
    left = shown_to_people(found, _reader(request))
    _say_all(f"  {line}" for line in named(left, unfixed(bool(config.unsafe_fixes))))


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def _code(findings: Iterable[Finding], config: Config, options: Namespace) -> int:
    counting = SEVERITIES[SEVERITIES.index(config.fail_on) :]
    found = any(each.severity.value in counting for each in findings)
    return FOUND if found and not options.exit_zero else CLEAN


def _report(
    request: CheckRequest,
    findings: tuple[Finding, ...],
    fixed: int,
    result: CheckResult,
    config: Config,
    options: Namespace,
) -> None:
    stream = sys.stdout
    to_file = options.output_file is not None
    color = not to_file and wants_color(options.color, stream)
    found, findings = findings, _to_show(findings, config)
    hidden = len(found) - len(findings)
    nothing = not (found or fixed or result.problems or options.statistics)
    if nothing and config.output_format == "text":
        known = f" {len(result.known)} more in the baseline." if result.known else ""
        _emit(options, f"No findings: {_looked_at(result, options)}.{known}")
        return
    from tensortrail.analyzer.fixing.fixer import with_previews
    from tensortrail.cli.newer_files import FOR_PEOPLE, told_together
    from tensortrail.findings import Report
    from tensortrail.reporters import TELL_OF_RULES, render

    read = _reader(request)
    format = "statistics" if options.statistics else config.output_format
    if format in FOR_PEOPLE:
        findings = told_together(findings)
    report = Report(
        findings=tuple(shown_to_people(with_previews(findings, read), read)),
        rules=_infos(findings) if format in TELL_OF_RULES else {},
        files_checked=len(result.files),
        fixed=fixed,
        known=len(result.known),
        problems=result.problems,
        root=os.path.abspath(request.root),
        version=__version__,
        short_notes=config.notes == "short",
        hidden=hidden,
    )
    if format in ("json", "gitlab", "junit", "rdjson"):  # no place there for anything else
        for problem in result.problems:
            say(problem)
    _emit(options, render(format, report, color=color, width=width()))


def _looked_at(result: CheckResult, options: Namespace) -> str:
    if options.changed_only and not result.files:
        return "no Python file was changed"
    return f"{counted(len(result.files), 'file')} checked"


def _to_show(findings: tuple[Finding, ...], config: Config) -> tuple[Finding, ...]:
    if config.notes != "hidden":
        return findings
    return tuple(each for each in findings if each.severity.value != "note")


def _infos(findings: Iterable[Finding]) -> dict[str, RuleInfo]:
    """What is known of the rules that found these; each of them is imported for it."""
    from tensortrail.analyzer.choosing.own import OWN
    from tensortrail.analyzer.choosing.rule_index import listed

    codes = {each.code for each in findings}
    return {code: rule.load().info() for code, rule in listed().items() if code in codes} | OWN


def _reader(request: CheckRequest) -> Callable[[str], bytes]:
    """Reads the Python in a file, or in standard input."""
    from tensortrail.analyzer.reading.python_files import python_of
    from tensortrail.files import read as read_file

    @lru_cache(maxsize=1)
    def read(path: str) -> bytes:
        if request.stdin is not None and path == request.stdin[0]:
            return python_of(path, request.stdin[1])
        return python_of(path, read_file(path))

    return read


def _emit(options: Namespace, text: str) -> None:
    if options.output_file is None:
        write_text(text, sys.stdout)
    else:
        write_output(text, options.output_file, "--output-file")


def _checked(request: CheckRequest) -> CheckResult:
    if not sys.stderr.isatty():
        return check(request)
    from tensortrail.cli.progress import LateProgress

    with LateProgress() as progress:
        return check(request, progress)
