"""What the checks of the doctor share: which of them to run, what is said of them, where to."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from tensortrail import __version__
from tensortrail.cli.console import say, wants_color, width, write_output, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.config import Config, counts
from tensortrail.doctor.checks import NOT_SELECTED, Check
from tensortrail.findings import Finding, Report
from tensortrail.plurals import counted


class Examined(Protocol):
    @property
    def findings(self) -> tuple[Finding, ...]: ...
    @property
    def checks(self) -> tuple[Check, ...]: ...
    @property
    def problems(self) -> tuple[str, ...]: ...


def chosen_codes(options: Namespace) -> frozenset[str] | None:
    from tensortrail.cli.request import listed
    from tensortrail.cli.selection import selected

    return selected(Config(select=listed(options.select), ignore=listed(options.ignore)))


def code_for(found: Examined, options: Namespace) -> int:
    if found_something(found.findings, options):
        return CLEAN if options.exit_zero else FOUND
    return FAILED if found.problems else CLEAN


def found_something(findings: Iterable[Finding], options: Namespace) -> bool:
    return any(counts(each.severity.value, options.fail_on) for each in findings)


def of_checks(checks: Sequence[Check], verbose: bool) -> Iterator[str]:
    """How many checks ran and did not; with `verbose` which, and why not."""
    reasons: dict[str, list[str]] = {}
    for check in checks:
        reasons.setdefault(check.left_out, []).append(check.name)
    ran = reasons.pop("", [])
    chosen = len(reasons.pop(NOT_SELECTED, []))
    left = sum(len(names) for names in reasons.values())
    if not verbose:
        parts = [f"{counted(len(ran), 'check')} ran"]
        parts += [f"{left} had nothing to look at (--verbose says why)"] if left else []
        parts += [f"{chosen} not selected"] if chosen else []
        yield ", ".join(parts)
        return
    yield f"checks that ran ({len(ran)}): {', '.join(ran)}"
    if chosen:
        yield f"did not run ({chosen}): {NOT_SELECTED}"
    for reason, names in reasons.items():
        yield f"did not run ({len(names)}), {reason}: {', '.join(names)}"


def report_of(found: Examined, files: int, told: str, verbose: bool) -> Report:
    """`told` is what there was to judge."""
    from tensortrail.rules import all_rules

    rules = all_rules()
    return Report(
        findings=found.findings,
        rules={each.code: rules[each.code].info() for each in found.findings},
        files_checked=files,
        problems=found.problems,
        root=os.path.abspath("."),
        version=__version__,
        notes=(told, *of_checks(found.checks, verbose)),
    )


def in_format(options: Namespace, report: Report) -> str:
    from tensortrail.reporters import render

    color = options.output is None and wants_color(options.color, sys.stdout)
    return render(options.format, report, color=color, width=width())


def checks_as_objects(checks: Sequence[Check]) -> list[dict[str, object]]:
    return [
        {"code": each.code, "name": each.name, "ran": not each.left_out, "why": each.left_out}
        for each in checks
    ]


def write_report(options: Namespace, text: str) -> None:
    if options.output is None:
        write_text(text, sys.stdout)
        return
    write_output(text, options.output, "--output")
    say(f"written to {options.output}")
