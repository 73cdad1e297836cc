"""How the words behind a command are read."""

from __future__ import annotations

import argparse
from typing import Any

from tensortrail.cli.unknown_words import Parser


class Command(Parser):
    """A command; with a `shorthand`, `doctor PATH` stands for `doctor checkpoint PATH`."""

    shorthand: tuple[str, ...] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.shorthand and args and args[0] not in (*self.shorthand, "-h", "--help"):
            args = [self.shorthand[0], *args]
        found, rest = super().parse_known_args(args, namespace)
        if isinstance(getattr(found, "paths", None), list):
            # `check a.py --diff b.py`: argparse takes no paths behind an option
            found.paths += [each for each in rest if not each.startswith("-")]
            rest = [each for each in rest if each.startswith("-")]
        if rest:  # reported here, and not by the outermost parser: it is this help that lists all
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest


def add_command(commands: Any, name: str, told: str, **options: Any) -> argparse.ArgumentParser:
    """The command `name`: `told` is its line in a list of commands and heads its own help."""
    sentence = f"{told[0].upper()}{told[1:]}."
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=told, description=sentence, **options
    )
    return parser
