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
MOST = 60
"""Files of one program that are looked for."""


def of_one_program(path: str, importing: Callable[[str], Sequence[str]]) -> Iterator[str]:
    """The file, then those that name it where they import, then those that name these, nearest
    first."""
    found = [path]
    for known in found:
        yield known
        new = [each for each in importing(known) if each not in found]
        found += new[: MOST - len(found)]


def importing(texts: Mapping[str, bytes], path: str) -> Sequence[str]:
    """The files that name this one in an import; if others have its name, with its folder, or from
    in there."""
    name, folder = _name(path), _folder_of(path)
    around, many = os.path.basename(folder).encode(), sum(_name(each) == name for each in texts) > 1
    found = []
    for each, text in texts.items():
        words = imported(text) if name in text else frozenset()
        if name in words and not (many and around not in words and not _is_in(each, folder)):
            found.append(each)
    return found


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(folder, ""))


def _folder_of(path: str) -> str:
    """Where it is imported from: of the `__init__.py` of a package, the folder above."""
    folder, name = os.path.split(path)
    return os.path.dirname(folder) if name.partition(".")[0] == "__init__" else folder


def imported(text: bytes) -> frozenset[bytes]:
    """All words of its imports."""
    said = b" ".join(each.group() for each in _IMPORTS.finditer(text))
    return frozenset(_WORD.findall(said))


def _name(path: str) -> bytes:
    """What the file is imported by: of the `__init__.py` of a package, its folder."""
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    return (os.path.basename(folder) if stem == "__init__" else stem).encode()
