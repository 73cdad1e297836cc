"""`tensortrail report`: what a recorded run comes to."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from tensortrail.cli import report_ranks
from tensortrail.cli.console import say
from tensortrail.cli.exit_codes import CLEAN, FAILED
from tensortrail.cli.extras import install
from tensortrail.cli.recorded_run import findings_of, opened_run
from tensortrail.cli.report_output import BINARY, emit, file_for, show
from tensortrail.config import ConfigError
from tensortrail.files import stay_inside

if TYPE_CHECKING:
    from tensortrail.findings import Report
    from tensortrail.tracer.reading.timeline import RunTimeline


def run(options: Namespace) -> int:
    if report_ranks.is_meant(options):
        return report_ranks.run(options)
    timeline = opened_run(options.run)
    if timeline is None:
        return FAILED
    for trouble in timeline.trouble:
        say(f"tensortrail: {trouble}")
    if options.format in BINARY:
        return _to_file(timeline, options)
    if options.format == "jsonl":
        return _jsonl(timeline, options.output)
    _told(timeline, findings_of(timeline, options.select or ""), options)
    return CLEAN


def _told(timeline: RunTimeline, report: Report, options: Namespace) -> None:
    """What the rules say of the run: to paste, for an editor, or to read."""
    if options.paste:
        from tensortrail.tracer.exports.paste import paste

        emit(paste(timeline, report.findings), options.output)
    elif options.format == "lens":
        from tensortrail.cli.lens import as_lens

        emit(as_lens(timeline, report.findings), options.output)
    else:
        _shown(timeline, report, options)


def _shown(timeline: RunTimeline, report: Report, options: Namespace) -> None:
    from tensortrail.tracer.exports.text import render
    from tensortrail.tracer.reading.ranks.ends import ends, unended

    report = replace(report, problems=(*unended(ends(timeline)), *report.problems))
    show(report, options, lambda color, width: render(timeline, color=color, width=width))


def _to_file(timeline: RunTimeline, options: Namespace) -> int:
    path = file_for(_directory(timeline), options)
    try:
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
        raise ConfigError(f"{error}: {install('export')}") from error
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
