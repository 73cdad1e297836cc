"""What `tensortrail weights` takes."""

from __future__ import annotations

import argparse

from tensortrail.cli.arguments.command import add_command


def add_weights(weights: argparse.ArgumentParser) -> None:
    commands = weights.add_subparsers(dest="weights", required=True, metavar="WHAT")
    told = "show how the weights changed from the first snapshot to the last"
    files = "two files, before and after; files in between show what was lost and restored"
    _add(add_command(commands, "compare", told), files)
    told = "show which weights are not the same on all ranks"
    _add(add_command(commands, "ranks", told), "one file of each rank")


def _add(command: argparse.ArgumentParser, files: str) -> None:
    command.add_argument("files", nargs="+", metavar="FILE", help=files)
    formats = ("text", "json")
    command.add_argument("--format", choices=formats, default="text", help="text is the default")
