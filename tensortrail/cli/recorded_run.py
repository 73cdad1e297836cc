"""The recorded run that a command is about: it is opened, and the rules are asked about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tensortrail import __version__
from tensortrail.cli.console import fail
from tensortrail.config import Config
from tensortrail.files import here

if TYPE_CHECKING:
    from tensortrail.findings import Finding, Report
    from tensortrail.rules.base import Rule
    from tensortrail.tracer.reading.timeline import RunTimeline


def opened_run(run: str) -> RunTimeline | None:
    """The run; None after saying why there is none."""
    from tensortrail.tracer.reading.timeline import open_run
    from tensortrail.tracer.trail.reader import NotATrail

    try:
        return open_run(run_path(run))
    except NotATrail as error:
        fail(str(error), "a run is recorded by: tensortrail trace script.py")
        return None


def findings_of(timeline: RunTimeline, select: str) -> Report:
    """What the rules say of a run."""
    from tensortrail.tracer.reading.findings_of_run import findings

    judged = findings(timeline, chosen(select))
    return report_of(judged.findings, (*timeline.trouble, *judged.problems))


def run_path(run: str) -> str:
    """Where a run lies: a path, or a name as `tensortrail runs` prints it."""
    from tensortrail.tracer.trail.run_files import DEFAULT_DIRECTORY

    below = os.path.join(DEFAULT_DIRECTORY, run)
    return below if not os.path.exists(run) and os.path.exists(below) else run


def codes_in(select: str) -> frozenset[str] | None:
    """These codes; None for the default ones. ConfigError if there is no rule of a code."""
    from tensortrail.cli.selection import selected

    return selected(
        Config(select=tuple(part.strip() for part in select.split(",") if part.strip()))
    )


def chosen(select: str) -> list[Rule]:
    """The rules of these codes that may say something of a run, or of what it saved."""
    from tensortrail.analyzer.choosing.rule_index import listed

    codes = codes_in(select)
    return [
        each.load()()
        for each in listed().values()
        if (each.watches_runs or each.examines_checkpoints)
        and (each.default if codes is None else each.code in codes)
    ]


def report_of(findings: Sequence[Finding], problems: Iterable[str]) -> Report:
    from tensortrail.analyzer.choosing.rule_index import listed
    from tensortrail.findings import Report

    rules = listed()
    known = {each.code for each in findings} & rules.keys()
    return Report(
        findings=tuple(findings),
        rules={code: rules[code].load().info() for code in known},
        files_checked=len({each.site.file for each in findings}),
        problems=tuple(problems),
        root=here(),
        version=__version__,
        fix_with="tensortrail fix",
    )
