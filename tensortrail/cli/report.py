"""`tensortrail report`: what a recorded run comes to."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from tensortrail import __version__
from tensortrail.cli.console import fail, say, wants_color, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED
from tensortrail.config import Config, ConfigError
from tensortrail.files import stay_inside

if TYPE_CHECKING:
    from tensortrail.findings import Report
    from tensortrail.rules.base import Rule
    from tensortrail.tracer.reading.timeline import RunTimeline

BINARY = {"parquet": "run.parquet", "html": "report.html", "perfetto": "perfetto.json"}
"""Formats that go into a file, with the name it gets in the run's directory."""


def run_path(run: str) -> str:
    """Where a run lies: a path, or a name as `tensortrail runs` prints it."""
    from tensortrail.tracer.trail.run_files import DEFAULT_DIRECTORY

    below = os.path.join(DEFAULT_DIRECTORY, run)
    return below if not os.path.exists(run) and os.path.exists(below) else run


def opened_run(run: str) -> RunTimeline | None:
    """The run; None after saying why there is none."""
    from tensortrail.tracer.reading.timeline import open_run
    from tensortrail.tracer.trail.reader import NotATrail

    try:
        return open_run(run_path(run))
    except NotATrail as error:
        fail(str(error), "a run is recorded by: tensortrail trace script.py")
        return None


def run(options: Namespace) -> int:
    timeline = opened_run(options.run)
    if timeline is None:
        return FAILED
    for trouble in timeline.trouble:
        say(f"tensortrail: {trouble}")
    format = options.format
    if format in BINARY:
        return _to_file(timeline, options)
    if format == "jsonl":
        return _jsonl(timeline, options.output)
    from tensortrail.tracer.reading.rank_comparison import unended

    report = findings_of(timeline, options.select or "")
    if options.paste:
        from tensortrail.tracer.exports.paste import paste

        _emit(paste(timeline, report.findings), options.output)
        return CLEAN
    if format == "lens":
        from tensortrail.cli.lens import as_lens

        _emit(as_lens(timeline, report.findings), options.output)
        return CLEAN
    report = replace(report, problems=(*unended(timeline), *report.problems))
    color = options.output is None and wants_color(options.color, sys.stdout)
    width = shutil.get_terminal_size((100, 40)).columns
    from tensortrail.reporters import render

    text = ""
    if format == "text":
        from tensortrail.tracer.exports.text import render as whole

        text = whole(timeline, color=color, width=width) + "\n"
    if format != "text" or report.findings or report.problems:
        name = "text" if format == "findings" else format
        text += render(name, report, color=color, width=width)
    _emit(text, options.output)
    return CLEAN


def chosen(select: str) -> list[Rule]:
    """The rules of these codes; ConfigError if there is none of a code."""
    from tensortrail.cli.selection import selected
    from tensortrail.rules import all_rules

    codes = selected(
        Config(select=tuple(part.strip() for part in select.split(",") if part.strip()))
    )
    return [
        rule()
        for code, rule in all_rules().items()
        if (rule.default if codes is None else code in codes)
    ]


def findings_of(timeline: RunTimeline, select: str) -> Report:
    """What the rules say of a run."""
    from tensortrail.findings import Report
    from tensortrail.rules import all_rules
    from tensortrail.tracer.reading.findings_of_run import findings

    rules = all_rules()
    judged = findings(timeline, chosen(select))
    return Report(
        findings=tuple(judged.findings),
        rules={code: rule.info() for code, rule in rules.items()},
        files_checked=len({each.site.file for each in judged.findings}),
        problems=(*timeline.trouble, *judged.problems),
        root=os.getcwd(),
        version=__version__,
    )


def _to_file(timeline: RunTimeline, options: Namespace) -> int:
    path = options.output or os.path.join(_directory(timeline), BINARY[options.format])
    try:
        stay_inside(path)
        if options.format == "parquet":
            from tensortrail.tracer.exports import parquet

            parquet.write(timeline, path)
        elif options.format == "perfetto":
            from tensortrail.tracer.exports import perfetto

            with open(path, "w", encoding="utf-8") as out:
                perfetto.write(timeline, out)
        else:
            from tensortrail.tracer.exports import html

            found = findings_of(timeline, options.select or "")
            with open(path, "w", encoding="utf-8") as out:
                html.write(timeline, found.findings, out)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    except ImportError as error:
        raise ConfigError(f"{error}: pip install tensortrail[export]") from error
    say(f"tensortrail: wrote {path}")
    return CLEAN


def _jsonl(timeline: RunTimeline, output: str | None) -> int:
    from tensortrail.tracer.exports import jsonl

    if output is None:
        jsonl.write(timeline, sys.stdout)
        return CLEAN
    try:
        stay_inside(output)
        with open(output, "w", encoding="utf-8") as out:
            jsonl.write(timeline, out)
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror or error}") from error
    return CLEAN


def _directory(timeline: RunTimeline) -> str:
    return os.path.dirname(timeline.parts[0].path)


def _emit(text: str, output: str | None) -> None:
    if output is None:
        write_text(text, sys.stdout)
        return
    from tensortrail.files import write

    try:
        write(output, (text.rstrip("\n") + "\n").encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror or error}") from error
