"""The texts of a project: which files are run or handed out, and which speak of each other."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from tensortrail.analyzer.facts.texts.mentions import (
    is_named,
    stem_of,
)
from tensortrail.analyzer.syntax.text_blocks import Block
from tensortrail.patterns import pattern

MAIN = "__main__"
"""The word of a program."""
_RUN = pattern(rb"__main__|argparse|^(?:for|while|with)\b|^[A-Za-z_][\w.]*\(", re.M)
"""What only a file has that is run, or that does something when it is imported."""
_DOES = pattern(rb"^(?!def\b|class\b|async\b|import\b|from\b|if\b)[A-Za-z_][^\n#]*\(", re.M)
"""Of a file that is in no package, this is enough."""
IMPORTING = "import_module __import__ pkgutil exec_module spec_from_file_location".split()
_BY_NAME = [each.encode() for each in IMPORTING]
"""What a text has that imports files which it does not name."""
_LIBRARY = ("setup.py", "setup.cfg", "pyproject.toml")


class ProjectTexts:
    """By their paths."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self.texts = texts
        self._roots: dict[str, str | None] = {}
        self._speaking_of: dict[str, list[str]] = {}

    def root(self, path: str) -> str | None:
        """What makes the file one that is run, or handed out: itself, or what imports files by
        names that are made up."""
        if path not in self._roots:
            self._roots[path] = self._rooted(path)
        return self._roots[path]

    def _rooted(self, path: str) -> str | None:
        place, text = os.path.dirname(path), self.texts[path]
        if not path.endswith(".py"):
            return path
        if stem_of(path) == "__init__" or _RUN.search(text):
            return path
        if os.path.join(place, "__init__.py") not in self.texts and _DOES.search(text):
            return path
        named = _parts(place)[self._above :]
        for other in self._importing_by_name:
            folder = os.path.dirname(other)
            is_below = folder != self._top and (place + os.sep).startswith(folder + os.sep)
            if is_below or folder == place:
                return other
            if any(is_named(self.texts[other], each) for each in named):
                return other
        return None

    def library(self, path: str) -> str | None:
        """A file that says how what lies at the path is installed; that of a copied project beside
        it says nothing of it."""
        return next((each for each in self._libraries if _is_below(path, each)), None)

    @cached_property
    def _libraries(self) -> list[str]:
        return [each for each in self.texts if os.path.basename(each) in _LIBRARY]

    @cached_property
    def program(self) -> str | None:
        """A file that is run."""
        return next((path for path, text in self.texts.items() if is_program(path, text)), None)

    def is_handed_out(self, path: str, block: Block) -> bool:
        """Users of a library call what they like of a file that is used."""
        return not block.name.startswith("_") and self.library(path) is not None

    @cached_property
    def names(self) -> frozenset[str]:
        """Of all files and folders."""
        parts = (_parts(os.path.splitext(each)[0]) for each in self.texts)
        return frozenset(part for each in parts for part in each)

    @cached_property
    def _top(self) -> str:
        return os.path.commonpath([os.path.dirname(each) for each in self.texts])

    @cached_property
    def _above(self) -> int:
        return len(_parts(self._top))

    @cached_property
    def _importing_by_name(self) -> list[str]:
        return [
            path
            for path, text in self.texts.items()
            if path.endswith(".py") and any(each in text for each in _BY_NAME)
        ]

    def speaking_of(self, path: str) -> list[str]:
        """Files that have the name of this one, as those that import it."""
        if path not in self._speaking_of:
            stem = stem_of(path)
            self._speaking_of[path] = [
                other
                for other, text in self.others_with(stem, path)
                if is_named(text, stem, other.endswith(".py"))
            ]
        return self._speaking_of[path]

    def others_with(self, word: str, apart_from: str) -> Iterator[tuple[str, bytes]]:
        raw = word.encode()
        for path, text in self.texts.items():
            if path != apart_from and raw in text:
                yield path, text


def is_program(path: str, text: bytes) -> bool:
    """It says what it does when it is run."""
    return path.endswith(".py") and MAIN.encode() in text


def _is_below(path: str, file: str) -> bool:
    """In the folder of the file, or further down."""
    folder = os.path.dirname(file)
    return not folder or path.startswith(os.path.join(folder, ""))


def _parts(path: str) -> list[str]:
    return [each for each in path.split(os.sep) if each]
