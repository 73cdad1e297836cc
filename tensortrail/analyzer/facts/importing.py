"""Which files come to import a file, and which name another GPU than the first, by their texts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from tensortrail.patterns import pattern

_IMPORTS = pattern(
    rb"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^)]*\)|[^\n#]*)|import[ \t]+[^\n#]*)",
    re.MULTILINE,
)
_NUMBERED_GPU = pattern(
    rb"^[^#\n]*(?:['\"]cuda:(?:[1-9{%]|['\"]\s*[+%])|torch\.device\(['\"]cuda['\"],)", re.MULTILINE
)
"""Another GPU than the first, or one of which a variable has the number."""
SETS_GPU = pattern(rb"^[^#\n]*\bcuda\.set_device\(", re.MULTILINE)
OTHER_BACKEND = pattern(rb"['\"](?:gloo|mpi)['\"]")
_WORD = pattern(rb"\w+")
_MOST = 60
"""Files of one program that are looked for."""


def importing(texts: Mapping[str, bytes], path: str) -> list[str]:
    """The file, then those that name it where they import, then those that name these, nearest
    first."""
    found, words = [path], {each: _imported(text) for each, text in texts.items()}
    for known in found:
        name = _name(known)
        new = (each for each, said in words.items() if name in said and each not in found)
        found += list(new)[: _MOST - len(found)]
    return found


def numbered_gpu(text: bytes) -> int:
    """The line that names another GPU than the first; 0 if none does."""
    found = _NUMBERED_GPU.search(text) if b"cuda" in text else None
    return text.count(b"\n", 0, found.end()) + 1 if found is not None else 0


def _imported(text: bytes) -> frozenset[bytes]:
    """All words of its imports."""
    said = b" ".join(each.group() for each in _IMPORTS.finditer(text))
    return frozenset(_WORD.findall(said))


def _name(path: str) -> bytes:
    """What the file is imported by: of the `__init__.py` of a package, its folder."""
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    return (os.path.basename(folder) if stem == "__init__" else stem).encode()
