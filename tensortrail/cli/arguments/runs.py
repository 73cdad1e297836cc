"""What the commands take that read a recorded run."""

from __future__ import annotations

import argparse

from tensortrail.config import FORMATS

REPORT_FORMATS = ("text", "html", "perfetto", "jsonl", "parquet", "lens", "findings", *FORMATS[2:])
OF_RUN = "the folder or file of a run; if omitted, the newest run here"


def add_report(report: argparse.ArgumentParser) -> None:
    add = report.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    add("--format", choices=REPORT_FORMATS, default="text", help="text is the default")
    add("-o", "--output", metavar="FILE", help="write to this file; html and others have a default")
    add("--paste", action="store_true", help="one block for an issue, without private details")
    add("--select", metavar="CODES", help="only findings of these rules")
    add("--color", choices=("auto", "always", "never"), default="auto")


def add_fleet(fleet: argparse.ArgumentParser) -> None:
    add = fleet.add_argument
    place = "the folder of a run, or its Parquet files; if omitted, the newest run here"
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=place)
    add("--format", choices=("text", "json"), default="text", help="text is the default")
    add("-o", "--output", metavar="FILE", help="write to this file")
    engine = "what runs the queries: duckdb in this process (the default), or the Spark session"
    add("--engine", choices=("duckdb", "pyspark"), default="duckdb", help=engine)


def add_fix(fix: argparse.ArgumentParser) -> None:
    add = fix.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    add("--diff", action="store_true", help="show what would change, change nothing")
    add("--unsafe-fixes", action="store_true", help="apply unsafe fixes too")
    add("--select", metavar="CODES", help="only fixes of these rules")


def add_settings(settings: argparse.ArgumentParser) -> None:
    add = settings.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    add("--apply", action="store_true", help="write them into the source files")
    add("--format", choices=("text", "json"), default="text", help="text is the default")
    add("--select", metavar="CODES", help="only settings of these rules")


def add_why(why: argparse.ArgumentParser) -> None:
    add = why.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    tensor = "a name (model.embed.weight), its end, or a variable; without it, all names are listed"
    add("tensor", nargs="?", metavar="TENSOR", help=tensor)
    add("--format", choices=("text", "json"), default="text", help="text is the default")


def add_runs(runs: argparse.ArgumentParser) -> None:
    add = runs.add_argument
    add(
        "folder", nargs="?", default=".tensortrail", metavar="FOLDER", help="the folder of the runs"
    )
    add("--compare", nargs=2, metavar=("A", "B"), help="show what is different in run B")
    add(
        "--remove",
        nargs="+",
        metavar="RUN",
        help="remove these runs, and nothing else in their folders",
    )
    add("--format", choices=("text", "json"), default="text", help="text is the default")
