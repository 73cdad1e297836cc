"""`tensortrail report` of a run of many ranks: rank by rank, in memory that their number does not
decide."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tensortrail.cli.console import say
from tensortrail.cli.exit_codes import CLEAN
from tensortrail.cli.fleet import write_parquet
from tensortrail.cli.recorded_run import chosen, report_of, run_path
from tensortrail.cli.report_output import emit, file_for, show
from tensortrail.config import ConfigError

if TYPE_CHECKING:
    from tensortrail.findings import Report
    from tensortrail.tracer.reading.ranks.run_of_ranks import RunOfRanks
    from tensortrail.tracer.trail.rank_files import RunFiles

WHOLE = ("jsonl", "perfetto", "lens")
"""Formats of single events: they are made of all of them."""


def is_meant(options: Namespace) -> bool:
    from tensortrail.tracer.trail.rank_files import files_by_rank
    from tensortrail.tracer.trail.reader import NotATrail

    if options.format in WHOLE:
        return False
    try:
        files = files_by_rank(run_path(options.run))
    except NotATrail:
        return False  # and the message is that of every run
    return files.several if options.format == "parquet" else files.has_many


def run(options: Namespace) -> int:
    from tensortrail.tracer.reading.ranks.many_ranks import readings
    from tensortrail.tracer.reading.ranks.run_of_ranks import RunOfRanks
    from tensortrail.tracer.trail.rank_files import files_by_rank

    files = files_by_rank(run_path(options.run))
    if options.format == "parquet":
        write_parquet(files, file_for(files.folder, options), options.select or "")
        return CLEAN
    found = RunOfRanks.of(readings(files, chosen(options.select or "")), files.trouble)
    for trouble in found.trouble:
        say(f"tensortrail: {trouble}")
    report = report_of(found.findings(), (*found.unended(), *found.trouble, *found.problems))
    if options.paste:
        from tensortrail.tracer.exports.paste import paste

        emit(paste(found.timeline(files), report.findings), options.output)
    elif options.format == "html":
        _page(found, files, report, options)
    else:
        from tensortrail.tracer.exports.ranks_text import render

        show(report, options, lambda color, width: render(found, color=color, width=width))
    return CLEAN


def _page(found: RunOfRanks, files: RunFiles, report: Report, options: Namespace) -> None:
    from tensortrail.tracer.exports import html

    path = file_for(files.folder, options)
    try:
        with open(path, "w", encoding="utf-8") as out:
            html.write(found.timeline(files), report.findings, out, found)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    say(f"tensortrail: wrote {path}")
