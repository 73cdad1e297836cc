"""Which files are of one program with a file: those that come to import it, by their texts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from tensortrail.patterns import pattern

_IMPORTS = pattern(
    rb"[ \t]*(?:from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^)]*\)|[^\n#]*)|import[ \t]+[^\n#]*)"
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


class Importers:
    """The files below a folder by the words of their imports."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self._by_word: dict[bytes, list[str]] = {}
        for path, text in texts.items():
            for word in imported(text):
                self._by_word.setdefault(word, []).append(path)
        self._named = Counter(map(_name, texts))

    def of(self, path: str) -> Sequence[str]:
        """The files that name this one in an import; if others have its name, with its folder, or
        from in there."""
        name, folder = _name(path), _folder_of(path)
        found = self._by_word.get(name, [])
        if self._named[name] <= 1:
            return found
        around = {*self._by_word.get(os.path.basename(folder).encode(), ())}
        return [each for each in found if each in around or _is_in(each, folder)]


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(folder, ""))


def _folder_of(path: str) -> str:
    """Where it is imported from: of the `__init__.py` of a package, the folder above."""
    folder, name = os.path.split(path)
    return os.path.dirname(folder) if name.partition(".")[0] == "__init__" else folder


def imported(text: bytes) -> frozenset[bytes]:
    """All words of its imports."""
    return frozenset(_WORD.findall(b" ".join(_imports(text))))


def _imports(text: bytes) -> Iterator[bytes]:
    """Its imports. A search for the plain word takes a quarter of what one for lines does."""
    at = text.find(b"import")
    while at >= 0:
        found = _IMPORTS.match(text, text.rfind(b"\n", 0, at) + 1)
        if found is not None:
            yield found.group()
        at = text.find(b"import", max(at + 1, found.end() if found is not None else 0))


def _name(path: str) -> bytes:
    """What the file is imported by: of the `__init__.py` of a package, its folder."""
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    return (os.path.basename(folder) if stem == "__init__" else stem).encode()
