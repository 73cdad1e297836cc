"""What `tensortrail weights` takes."""

from __future__ import annotations

import argparse


def add_weights(weights: argparse.ArgumentParser) -> None:
    commands = weights.add_subparsers(dest="weights", required=True, metavar="WHAT")
    told = "what became of the weights from the first snapshot to the last"
    files = "two files, before and after; those between tell what was lost and restored"
    _add(commands.add_parser("compare", help=told, description=told), files)
    told = "what is not the same on all ranks"
    _add(commands.add_parser("ranks", help=told, description=told), "a file of each rank")


def _add(command: argparse.ArgumentParser, files: str) -> None:
    command.add_argument("files", nargs="+", metavar="FILE", help=files)
    formats = ("text", "json")
    command.add_argument("--format", choices=formats, default="text", help="text is the default")
