"""Whether anything of a project names a function or class: read from its texts, when asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from tensortrail.analyzer.facts.project_top import inside, known_top
from tensortrail.analyzer.facts.texts.reach import Reach
from tensortrail.analyzer.facts.texts.texts_below import APART, LARGEST, TextsOnce

ENDS = tuple(".py .ipynb .yaml .yml .toml .cfg .gin .json .jsonnet .sh .md .rst .txt".split())
"""Files that name functions and classes: code, settings, documents."""
_MOST_BYTES = 60_000_000
"""Of more text nothing is said."""


class Uses:
    """The texts of projects, and the names that were looked for in them."""

    def __init__(self, texts: TextsOnce | None = None) -> None:
        self._text_of = (texts or TextsOnce()).of
        self._texts: dict[str, dict[str, bytes] | None] = {}
        self._reach: dict[str, Reach | None] = {}

    def forget(self, path: str) -> None:
        """The file may have changed."""
        self._reach.clear()
        for texts in self._texts.values():
            if texts is not None and path in texts:
                texts[path] = self._text_of(path, LARGEST)

    def reach(self, package: str) -> Reach | None:
        """What is used of the project around the package; None where that cannot be told."""
        if package not in self._reach:
            texts = self._texts_around(package)
            self._reach[package] = Reach(texts) if texts is not None else None
        return self._reach[package]

    def named_beside(self, package: str, name: str, how: Callable[[bytes], bool]) -> str | None:
        """A file around the package that has the word and does this as well."""
        texts, raw = self._texts_around(package) or {}, name.encode()
        return next((path for path, text in texts.items() if raw in text and how(text)), None)

    def _texts_around(self, package: str) -> dict[str, bytes] | None:
        if package not in self._texts:
            self._texts[package] = self._bounded(_files(package))
        return self._texts[package]

    def _bounded(self, paths: Iterator[str]) -> dict[str, bytes] | None:
        texts: dict[str, bytes] = {}
        size = 0
        for path in paths:
            texts[path] = self._text_of(path, LARGEST)
            size += len(texts[path])
            if size > _MOST_BYTES:
                return None
        return texts


def _files(package: str) -> Iterator[str]:
    """Those below the top of the project; where no top is known, those of the package and the
    scripts beside it."""
    top = known_top(package)
    yield from _below(top or package)
    if top is None:
        yield from _scripts_in(os.path.dirname(package) or os.curdir)


def _scripts_in(folder: str) -> Iterator[str]:
    try:
        names = sorted(each for each in os.listdir(folder) if each.endswith(".py"))
    except OSError:
        return
    yield from (inside(folder, each) for each in names)


def _below(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each not in APART and each[0] != ".")
        # "a.py", as a file of the check is called, and not "./a.py":
        paths = (os.path.normpath(os.path.join(place, each)) for each in sorted(names))
        yield from (each for each in paths if each.endswith(ENDS))
