"""The arguments of every command, or of the one that is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from tensortrail import __version__
from tensortrail.cli.arguments.command import Command, add_command
from tensortrail.cli.unknown_words import Parser

_FOLDER = "tensortrail.cli.arguments"


class _Named(NamedTuple):
    """A command: its help, and the file and function that add its arguments."""

    help: str
    file: str = ""
    adds: str = ""

    def add_to(self, command: argparse.ArgumentParser) -> None:
        if self.file:
            add: Callable[[Any], None] = getattr(import_module(f"{_FOLDER}.{self.file}"), self.adds)
            add(command)


_COMMANDS = {
    "demo": _Named("see a failing program explained and fixed", "small", "add_demo"),
    "check": _Named("find risky code without running it", "check", "add_check"),
    "trace": _Named("run a program and record what its tensors do (tensortrail trace --help)"),
    "report": _Named(
        "show the findings of a recorded run, and what was where", "runs", "add_report"
    ),
    "fleet": _Named(
        "show which ranks of a run differ, and which stopped first", "runs", "add_fleet"
    ),
    "fix": _Named("apply the changes that a recorded run suggests", "runs", "add_fix"),
    "settings": _Named(
        "show the arguments that a recorded run suggests to change, as a patch if possible",
        "runs",
        "add_settings",
    ),
    "why": _Named("show why a tensor of a run is where it is", "runs", "add_why"),
    "runs": _Named("list, compare and remove recorded runs", "runs", "add_runs"),
    "weights": _Named(
        "compare snapshots of weights saved by a run or by tensortrail.fingerprint",
        "weights",
        "add_weights",
    ),
    "doctor": _Named(
        "check checkpoints, settings, placements and tensor classes before use",
        "doctor",
        "add_doctor",
    ),
    "server": _Named("the language server for editors: finds risky code while you type"),
    "explain": _Named("show the page of a rule, or list the rules", "small", "add_explain"),
}


def parser(asked: str = "") -> argparse.ArgumentParser:
    """Of all commands; of one alone if that is `asked`, which takes a third of the time."""
    top = Parser(
        prog="tensortrail",
        description="Which tensor is where, who put it there, and what to change.",
    )
    top.add_argument("--version", action="version", version=f"tensortrail {__version__}")
    commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Command
    )
    for name in [asked] if asked in _COMMANDS else _COMMANDS:
        each = _COMMANDS[name]
        each.add_to(add_command(commands, name, each.help, add_help=name != "trace"))
    return top
