"""Which files are of one program with a file: those that come to import it, by their texts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from tensortrail.patterns import pattern

_IMPORTS = pattern(
    rb"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^)]*\)|[^\n#]*)|import[ \t]+[^\n#]*)",
    re.MULTILINE,
)
_WORD = pattern(rb"\w+")
_MOST = 60
"""Files of one program that are looked for."""


def of_one_program(texts: Mapping[str, bytes], path: str) -> list[str]:
    """The file, then those that name it where they import, then those that name these, nearest
    first."""
    found, words = [path], {each: _imported(text) for each, text in texts.items()}
    for known in found:
        name = _name(known)
        new = (each for each, said in words.items() if name in said and each not in found)
        found += list(new)[: _MOST - len(found)]
    return found


def _imported(text: bytes) -> frozenset[bytes]:
    """All words of its imports."""
    said = b" ".join(each.group() for each in _IMPORTS.finditer(text))
    return frozenset(_WORD.findall(said))


def _name(path: str) -> bytes:
    """What the file is imported by: of the `__init__.py` of a package, its folder."""
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    return (os.path.basename(folder) if stem == "__init__" else stem).encode()
