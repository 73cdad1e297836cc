"""A word that a command does not know is answered by the one that may have been meant."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from tensortrail.cli.console import columns, fail

CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
OPTION = re.compile(r"unrecognized arguments: (--[\w-]+)")


class _Formatter(argparse.HelpFormatter):
    """Made for each argument that is added. Without a width it imports all that packs files."""

    def __init__(self, prog: str, **given: Any) -> None:
        super().__init__(prog, **{"width": columns(80) - 2, **given})


class Parser(argparse.ArgumentParser):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **{"formatter_class": _Formatter, **named})

    def error(self, message: str) -> NoReturn:
        """As for any other error: their usage fills half a screen."""
        fail(message + self._meant(message), f"usage and options: {self.prog} --help")
        self.exit(2)

    def _meant(self, message: str) -> str:
        if choice := CHOICE.search(message):
            return _closest(choice[1], re.findall(r"[\w-]+", choice[2]))
        if option := OPTION.search(message):
            return _closest(option[1], sorted(self._every_option()))
        return ""

    def _every_option(self) -> set[str]:
        """Its own and those of the commands below it: the outermost one reports them all."""
        found: set[str] = set()
        for action in self._actions:
            found.update(action.option_strings)
            for below in action.choices.values() if isinstance(action.choices, dict) else ():
                if isinstance(below, Parser):
                    found |= below._every_option()
        return found


def _closest(word: str, known: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word, known, 1, 0.7)
    return f"; did you mean {close[0]}?" if close else ""
