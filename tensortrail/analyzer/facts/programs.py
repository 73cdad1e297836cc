"""Which files are of one program with a file: those that come to import it, by their texts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tensortrail.patterns import pattern

_IMPORTS = pattern(
    rb"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^)]*\)|[^\n#]*)|import[ \t]+[^\n#]*)",
    re.MULTILINE,
)
_WORD = pattern(rb"\w+")
_MOST = 60
"""Files of one program that are looked for."""


def of_one_program(path: str, importing: Callable[[bytes], Sequence[str]]) -> Iterator[str]:
    """The file, then those that name it where they import, then those that name these, nearest
    first."""
    found = [path]
    for known in found:
        yield known
        new = [each for each in importing(_name(known)) if each not in found]
        found += new[: _MOST - len(found)]


def importing(texts: Mapping[str, bytes], name: bytes) -> Sequence[str]:
    """The files that have the name in an import."""
    return [each for each, text in texts.items() if name in text and name in _imported(text)]


def _imported(text: bytes) -> frozenset[bytes]:
    """All words of its imports."""
    said = b" ".join(each.group() for each in _IMPORTS.finditer(text))
    return frozenset(_WORD.findall(said))


def _name(path: str) -> bytes:
    """What the file is imported by: of the `__init__.py` of a package, its folder."""
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    return (os.path.basename(folder) if stem == "__init__" else stem).encode()
