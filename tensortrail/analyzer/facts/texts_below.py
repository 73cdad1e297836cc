"""The Python files below a folder, with their texts, for what a search of words can answer."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from pathlib import Path

from tensortrail.files import read

APART = frozenset("test tests testing venv env node_modules site-packages build dist".split())
"""Folders that hold no code of the project itself."""
LARGEST = 1_000_000
"""Bytes of a file that is read for a question about names or calls."""
_MOST_BYTES = 80_000_000
"""Of files that are read for one folder."""

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "LICENSE")
"""What lies at the top of a project."""
_HIGHEST = 4
"""Folders above the file where the top is looked for."""


def top_of_project(folder: Path) -> Path:
    """The nearest folder that looks like the top of a project; else the one that is given."""
    for each in [folder, *folder.parents][: _HIGHEST + 1]:
        if any(os.path.exists(os.path.join(each, mark)) for mark in _MARKS):
            return each
    return folder


def texts_below(folder: Path, apart: Container[str]) -> Iterator[tuple[str, bytes]]:
    """Each file with its text, in an order that is the same in every run. Folders with names of
    `apart`, and hidden ones, are left out."""
    size = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each not in apart and each[0] != ".")
        for name in sorted(each for each in names if each.endswith(".py")):
            path = os.path.join(place, name)
            text = text_of(path)
            size += len(text)
            if size > _MOST_BYTES:
                return
            yield path, text


def text_of(path: str, largest: int = _MOST_BYTES) -> bytes:
    """Nothing, of a file that cannot be read or is larger."""
    try:
        return read(path) if os.path.getsize(path) <= largest else b""
    except OSError:
        return b""
