"""What the commands take that have few arguments."""

from __future__ import annotations

import argparse


def add_demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument(
        "folder",
        nargs="?",
        default="tensortrail-demo",
        metavar="FOLDER",
        help="the new folder for its program and runs",
    )


def add_explain(explain: argparse.ArgumentParser) -> None:
    explain.add_argument("rule", nargs="?", help="a code (OFF101) or name; OFF lists a family")
    explain.add_argument("--color", choices=("auto", "always", "never"), default="auto")
