"""`tensortrail doctor`: what would go wrong, found out before it does. One file a sub-command."""

from __future__ import annotations

from argparse import Namespace


def run(options: Namespace) -> int:
    from tensortrail.cli.doctor_subclass import run as subclass

    commands = {"subclass": subclass}
    return commands[options.doctor](options)
