"""What every report of a run needs: where the run lies, which rules, and where the text goes."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tensortrail import __version__
from tensortrail.cli.console import wants_color, write_text
from tensortrail.config import Config, ConfigError
from tensortrail.files import stay_inside

if TYPE_CHECKING:
    from tensortrail.findings import Finding, Report
    from tensortrail.rules.base import Rule

BINARY = {"parquet": "run.parquet", "html": "report.html", "perfetto": "perfetto.json"}
"""Formats that go into a file, with the name it gets in the run's directory."""


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
        root=os.getcwd(),
        version=__version__,
        fix_with="tensortrail fix",
    )


def show(report: Report, options: Namespace, whole: Callable[[bool, int], str]) -> None:
    """The findings in the format asked for; `whole` tells a person of the run before them."""
    from tensortrail.reporters import render

    color = options.output is None and wants_color(options.color, sys.stdout)
    width = shutil.get_terminal_size((100, 40)).columns
    text = whole(color, width) + "\n" if options.format == "text" else ""
    name = "text" if options.format == "findings" else options.format
    text += render(name, report, color=color, width=width)
    emit(text, options.output)


def file_for(directory: str, options: Namespace) -> str:
    """Where a format goes that is no text for a terminal."""
    path: str = options.output or os.path.join(directory, BINARY[options.format])
    try:
        stay_inside(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    return path


def emit(text: str, output: str | None) -> None:
    if output is None:
        write_text(text, sys.stdout)
        return
    from tensortrail.files import write

    try:
        write(output, (text.rstrip("\n") + "\n").encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror or error}") from error
