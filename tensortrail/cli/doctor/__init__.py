"""`tensortrail doctor`: what would go wrong, found out before it does. One file a sub-command."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module


def run(options: Namespace) -> int:
    command = import_module(f"{__name__}.{options.doctor.replace('-', '_')}")
    return int(command.run(options))
