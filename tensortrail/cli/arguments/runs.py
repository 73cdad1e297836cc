"""What the commands take that read a recorded run."""

from __future__ import annotations

import argparse

from tensortrail.config import FORMATS

REPORT_FORMATS = ("text", "html", "perfetto", "jsonl", "parquet", "lens", "findings", *FORMATS[2:])
OF_RUN = "a run's directory or file; without it, the newest run here"


def add_report(report: argparse.ArgumentParser) -> None:
    add = report.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    add("--format", choices=REPORT_FORMATS, default="text", help="text is the default")
    add("-o", "--output", metavar="FILE", help="write there; html and others choose a name")
    add("--paste", action="store_true", help="one block for an issue, without what is private")
    add("--select", metavar="CODES", help="findings of these rules only")
    add("--color", choices=("auto", "always", "never"), default="auto")


def add_fleet(fleet: argparse.ArgumentParser) -> None:
    add = fleet.add_argument
    place = "a run's directory, or its Parquet form; without it, the newest run here"
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=place)
    add("--format", choices=("text", "json"), default="text", help="text is the default")
    add("-o", "--output", metavar="FILE", help="write there")
    engine = "what answers: duckdb in this process, the default, or the session of Spark"
    add("--engine", choices=("duckdb", "pyspark"), default="duckdb", help=engine)


def add_fix(fix: argparse.ArgumentParser) -> None:
    add = fix.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    add("--diff", action="store_true", help="show what would change, change nothing")
    add("--unsafe-fixes", action="store_true", help="unsafe ones too")
    add("--select", metavar="CODES", help="fixes of these rules only")


def add_settings(settings: argparse.ArgumentParser) -> None:
    add = settings.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    add("--apply", action="store_true", help="put them into the source")
    add("--format", choices=("text", "json"), default="text", help="text is the default")
    add("--select", metavar="CODES", help="settings of these rules only")


def add_why(why: argparse.ArgumentParser) -> None:
    add = why.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    tensor = "model.embed.weight, the end of its name, or a variable; without it, a list of them"
    add("tensor", nargs="?", metavar="TENSOR", help=tensor)
    add("--format", choices=("text", "json"), default="text", help="text is the default")


def add_runs(runs: argparse.ArgumentParser) -> None:
    add = runs.add_argument
    add("folder", nargs="?", default=".tensortrail", metavar="FOLDER", help="where the runs are")
    add("--compare", nargs=2, metavar=("A", "B"), help="what is different in run B")
    add(
        "--remove",
        nargs="+",
        metavar="RUN",
        help="remove these runs, and nothing else that lies in their folders",
    )
    add("--format", choices=("text", "json"), default="text", help="text is the default")
