"""Programs that are told on the command line what to do: somebody runs them."""

from __future__ import annotations

from tensortrail.rules.shared.imports import imported_packages
from tensortrail.rules.view import Module

COMMAND_LINES = frozenset(
    "argparse optparse click typer fire tyro hydra absl simple_parsing jsonargparse docopt".split()
)
"""Packages that read it."""


def is_command(module: Module) -> bool:
    """The file reads the command line, itself or by a package that is made for it."""
    if not imported_packages(module).isdisjoint(COMMAND_LINES):
        return True
    return any(module.qualified(each) == "sys.argv" for each in module.members("argv"))
