"""The arguments of every command."""

from __future__ import annotations

import argparse

from tensortrail import __version__
from tensortrail.cli.arguments.check import add_check
from tensortrail.cli.arguments.command import Command
from tensortrail.cli.arguments.doctor import add_doctor
from tensortrail.cli.arguments.runs import add_fix, add_report, add_runs, add_settings, add_why
from tensortrail.cli.suggestions import Parser


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="tensortrail",
        description="Which tensor is where, who put it there, and what to change.",
    )
    top.add_argument("--version", action="version", version=f"tensortrail {__version__}")
    commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Command
    )
    demo = commands.add_parser("demo", help="see a failing program explained and mended")
    demo.add_argument(
        "folder",
        nargs="?",
        default="tensortrail-demo",
        metavar="FOLDER",
        help="where its program and its runs go",
    )
    add_check(commands.add_parser("check", help="find risky code without running it"))
    trace = "run a program and record what its tensors do (tensortrail trace --help)"
    commands.add_parser("trace", help=trace, add_help=False)
    add_report(commands.add_parser("report", help="show what a recorded run comes to"))
    add_fix(commands.add_parser("fix", help="apply what a recorded run suggests"))
    settings = "show the settings that a recorded run calls for, as a patch where it can be one"
    add_settings(commands.add_parser("settings", help=settings))
    add_why(commands.add_parser("why", help="say why a tensor of a run is where it is"))
    add_runs(commands.add_parser("runs", help="list, compare and remove recorded runs"))
    add_doctor(commands.add_parser("doctor", help="find out what would go wrong, before it does"))
    server = "find risky code while you type: the language server, for editors"
    commands.add_parser("server", help=server)
    explain = commands.add_parser("explain", help="show a rule's page, or list the rules")
    explain.add_argument("rule", nargs="?", help="a code (OFF101) or name; OFF lists a family")
    explain.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    return top
