"""What a check found is printed or written, in the format asked for."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from tensortrail import __version__
from tensortrail.analyzer.choosing.request import CheckRequest, CheckResult
from tensortrail.analyzer.reading.python_files import shown as shown_to_people
from tensortrail.cli.console import say, wants_color, width, write_output, write_text
from tensortrail.config import Config
from tensortrail.plurals import counted, quiet_notes

if TYPE_CHECKING:
    from tensortrail.findings import Finding, Report, RuleInfo

WITHOUT_PROBLEMS = ("json", "gitlab", "junit", "rdjson")
"""Formats that have no place for what went wrong in a check."""


def report(
    request: CheckRequest,
    found: tuple[Finding, ...],
    fixed: int,
    result: CheckResult,
    config: Config,
    options: Namespace,
) -> None:
    nothing = not (found or fixed or result.problems or options.statistics)
    if nothing and config.output_format == "text":
        _emit(options, _nothing_found(request, result, config, options))
        return
    from tensortrail.reporters import render

    format = "statistics" if options.statistics else config.output_format
    told = _report_of(request, found, fixed, result, config, format)
    if format in WITHOUT_PROBLEMS:
        for problem in result.problems:
            say(problem)
    color = options.output_file is None and wants_color(options.color, sys.stdout)
    _emit(options, render(format, told, color=color, width=width()))


def _report_of(
    request: CheckRequest,
    found: tuple[Finding, ...],
    fixed: int,
    result: CheckResult,
    config: Config,
    format: str,
) -> Report:
    from tensortrail.analyzer.fixing.previews import with_previews
    from tensortrail.cli.newer_files import FOR_PEOPLE, told_together
    from tensortrail.findings import Report
    from tensortrail.reporters import TELL_OF_RULES

    read = reader(request)
    shown = _to_show(found, config)
    findings = told_together(shown) if format in FOR_PEOPLE else shown
    return Report(
        findings=tuple(shown_to_people(with_previews(findings, read), read)),
        rules=_infos(findings) if format in TELL_OF_RULES else {},
        files_checked=len(result.files),
        fixed=fixed,
        known=len(result.known),
        known_where=_where(request),
        problems=result.problems,
        root=os.path.abspath(request.root),
        version=__version__,
        short_notes=config.notes == "short",
        hidden=len(found) - len(shown),
        quiet=_quiet(result, config),
    )


def _quiet(result: CheckResult, config: Config) -> int:
    return result.quiet if config.notes != "hidden" else 0


def _where(request: CheckRequest) -> str:
    return request.baseline.where if request.baseline else ""


def _nothing_found(
    request: CheckRequest, result: CheckResult, config: Config, options: Namespace
) -> str:
    known = f" {len(result.known)} more {_where(request)}." if result.known else ""
    quiet = quiet_notes(_quiet(result, config))
    return f"No findings: {_looked_at(result, options)}.{known}{quiet}"


def _looked_at(result: CheckResult, options: Namespace) -> str:
    if (options.changed_only or options.new_since) and not result.files:
        return "no Python file was changed"
    return f"{counted(len(result.files), 'file')} checked"


def _to_show(findings: tuple[Finding, ...], config: Config) -> tuple[Finding, ...]:
    if config.notes != "hidden":
        return findings
    return tuple(each for each in findings if each.severity.value != "note")


def _infos(findings: Iterable[Finding]) -> dict[str, RuleInfo]:
    """What is known of the rules that found these; each of them is imported for it."""
    from tensortrail.analyzer.choosing.own_findings import OWN
    from tensortrail.analyzer.choosing.rule_index import listed

    codes = {each.code for each in findings}
    return {code: rule.load().info() for code, rule in listed().items() if code in codes} | OWN


def reader(request: CheckRequest) -> Callable[[str], bytes]:
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
