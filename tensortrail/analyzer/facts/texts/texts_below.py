"""The Python files below a folder, with their texts, for what a search of words can answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator

from tensortrail.analyzer.reading.texts import Texts
from tensortrail.files import read

APART = frozenset("test tests testing venv env node_modules site-packages build dist".split())
"""Folders that hold no code of the project itself."""
LARGEST = 1_000_000
"""Bytes of a file that is read for a question about names or calls."""
_MOST_BYTES = 80_000_000
"""Of files that are read for one folder."""


class TextsOnce:
    """The texts of files, each read and kept once, whoever searches it."""

    def __init__(self, of_check: Texts | None = None) -> None:
        """`of_check` has some of them already; they are not kept twice."""
        self._of_check = of_check
        self._known: dict[str, bytes] = {}

    def forget(self, path: str) -> None:
        """The file may have changed."""
        self._known.pop(path, None)

    def of(self, path: str, largest: int = _MOST_BYTES) -> bytes:
        """Nothing, of a file that cannot be read or is larger."""
        if path in self._known:
            known = self._known[path]
            return known if len(known) <= largest else b""
        kept = self._of_check.known(path) if self._of_check is not None else None
        text = text_of(path, largest) if kept is None or len(kept) > largest else kept
        if text:
            self._known[path] = text
        return text


def texts_below(
    folder: str, apart: Container[str], text_of: Callable[[str], bytes]
) -> Iterator[tuple[str, bytes]]:
    """Each file with its text, in an order that is the same in every run. Folders with names of
    `apart`, and hidden ones, are left out."""
    size = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each not in apart and each[0] != ".")
        for name in sorted(each for each in names if each.endswith(".py")):
            path = os.path.normpath(os.path.join(place, name))  # as a file of the check is called
            text = text_of(path)
            size += len(text)
            if size > _MOST_BYTES:
                return
            yield path, text


def text_of(path: str, largest: int = _MOST_BYTES) -> bytes:
    """Nothing, of a file that cannot be read or is larger."""
    try:
        return read(path, largest)
    except OSError:
        return b""
