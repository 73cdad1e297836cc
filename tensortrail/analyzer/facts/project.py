"""The files around the one being judged, read only when a rule's question needs them."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tensortrail.analyzer.facts import questions
from tensortrail.analyzer.facts.all_of import all_of
from tensortrail.analyzer.facts.answers import Answers, text_of
from tensortrail.analyzer.facts.definitions import Definitions
from tensortrail.analyzer.facts.project_file import Kinds, KnownClass, Place, ProjectFile, Question
from tensortrail.analyzer.facts.project_paths import ProjectPaths
from tensortrail.analyzer.facts.saves import Saves
from tensortrail.analyzer.facts.texts.customs import Customs
from tensortrail.analyzer.facts.texts.texts_below import TextsOnce
from tensortrail.analyzer.facts.uses import Uses
from tensortrail.analyzer.reading.limits import Limit
from tensortrail.analyzer.reading.source import Unreadable
from tensortrail.analyzer.reading.texts import Texts
from tensortrail.analyzer.syntax.names import module_name
from tensortrail.analyzer.syntax.trees import Trees
from tensortrail.files import read
from tensortrail.rules.words import UNKNOWN_VALUE, Value

_KEPT = 2_000_000
"""Bytes of the files that are kept from one file that is judged to the next: those asked about
last. Their trees take some fifty times as much."""

ASKED_BY_A_FILE = 1
"""How many functions are being run for an answer to another file."""
_DEEPEST = 20
"""Functions that are being run, and files that ask one another, one inside the other: far more than
in code that people write, and half of what Python's stack has room for."""
_OFTEN = 8
"""Of files that so many others asked about, the one that was asked last stays longest."""

A = TypeVar("A")
N = TypeVar("N", bound=ast.AST)
Opener = Callable[[str, bytes, "Project"], ProjectFile]
"""Reads and indexes the file of that path and those bytes."""


class Project:
    """Finds and reads other files of the same project by dotted module name.

    One Project lives as long as a check (or the editor's server); it keeps what it has read."""

    def __init__(
        self, open_file: Opener, words: Collection[bytes] = (b"",), texts: Texts | None = None
    ) -> None:
        self._open_file = open_file
        self.words = words
        """What of very large files is read: the statements that hold one of these."""
        self.trees = Trees()
        self._texts = TextsOnce(texts)
        self.customs = Customs(self._texts)
        self.uses = Uses(self._texts)
        self.saves = Saves()
        self._modules: dict[str, ProjectFile | None] = {}
        """In the order of their last use."""
        self._untouched: dict[str, None] = {}
        """Those of them that nobody asked about since the file that is judged was begun."""
        self._asked_by: Counter[str] = Counter()
        """How many of the files that were judged asked about each, kept or not."""
        self._size = 0
        """Bytes of all of them."""
        self._paths = ProjectPaths()
        self.answers = Answers()
        self._definitions = Definitions(
            self._paths.file_of, self.module_at, self._note, self.answers, self._name_of
        )
        self.packages: dict[str, bool] = {}
        """Whether a folder that was asked about has an `__init__.py`."""
        self.limit = Limit()
        self.depth = 0
        """How many functions are being run, each because the one before asked about it, since a
        file asked another."""
        self._above = 0
        """Those that were being run before it asked."""

    def forget(self, path: str) -> None:
        """The file has changed."""
        self.packages.pop(os.path.dirname(path), None)
        self._size -= _size_of(self._modules.pop(path, None))
        self._untouched.pop(path, None)
        self._texts.forget(path)
        self.customs.forget(path)
        self.uses.forget(path)
        self.saves.forget(path)
        self._definitions.forget(path)

    def trim(self) -> None:
        """Between two files: let go of those that nobody asked about lately."""
        self._untouched = {path: None for path in self._modules if self._modules[path]}
        self._make_room()

    def _make_room(self) -> None:
        """Those go first that few files ask about, of these the oldest: what all files of a package
        ask about takes more than is kept, so that each would be gone just before it is asked for.
        While a file is judged it keeps those that it asked about."""
        while self._size > _KEPT and self._untouched:
            path = min(self._untouched, key=self._times_asked)
            del self._untouched[path]
            module = self._modules.pop(path)
            self._size -= _size_of(module)
            if module is not None:
                module.release()

    def _times_asked(self, path: str) -> int:
        return min(self._asked_by[path], _OFTEN)

    def module_at(self, path: str) -> ProjectFile | None:
        """The file read and indexed; None if it cannot be."""
        if path in self._modules:
            if path in self._untouched:
                del self._untouched[path]
                self._asked_by[path] += 1
            module = self._modules.pop(path)
        else:
            self._asked_by[path] += 1
            module = self._opened(path)
            self._size += _size_of(module)
            self._make_room()
        self._modules[path] = module  # last in the order of use
        return module

    def _opened(self, path: str) -> ProjectFile | None:
        try:
            return self._open_file(path, read(path), self)
        except (OSError, Unreadable, RecursionError, MemoryError):
            return None

    def about(self, asking: ProjectFile, dotted: str, question: Question[A]) -> A | None:
        """What can be said of that class or function; its file is not read again for it."""
        return self._definitions.about(asking, dotted, question)

    def defined(self, asking: ProjectFile, dotted: str, kinds: Kinds) -> Place | None:
        """Where the class or function is defined that a dotted name stands for."""
        return self._definitions.defined(asking, dotted, kinds)

    def named_in(self, asking: ProjectFile, path: str, dotted: str, kinds: Kinds) -> Place | None:
        """Where a file defines what others know by the dotted name, if it is of this kind."""
        return self._definitions.named_in(asking, path, dotted, kinds)

    def asked_at(
        self, asking: ProjectFile, place: Place, question: Callable[..., A], *words: str
    ) -> A | None:
        """What a definition of this file, or another one, says; None where there is none."""
        if place.path != asking.path:
            return self._definitions.at(asking, place, question, *words)
        node = asking.definition_named(place.name)
        return question(asking, node, *words) if node is not None else None

    def class_named(self, asking: ProjectFile, dotted: str) -> KnownClass | None:
        """The same of a class, with its facts; its file is not read again for them."""
        return self._definitions.of_class(asking, dotted)

    def global_of(self, asking: ProjectFile, dotted: str) -> Value:
        """What a name at the top of another file is; unknown if there is no such file."""
        found = self._paths.file_of(asking, dotted)
        if found is None or found[0] == asking.path or "." in found[1]:
            return UNKNOWN_VALUE
        top = Place(found[0], "")
        value = self._definitions.at(asking, top, questions.global_value, found[1])
        return value or UNKNOWN_VALUE

    def rest_on(
        self,
        asking: ProjectFile,
        path: str,
        answer: Callable[[], object],
        question: Callable[..., Any],
        *words: str,
    ) -> None:
        """What is found in the file that asks rests on this answer of another one: it is judged
        again when that says something else. The question is about the definition that the first
        word names, or about all of the file; the other words were given too."""
        asking.needs.add(path)
        self._note(path, answer, question, *words)

    def rest_on_all_of(self, asking: ProjectFile, paths: Iterable[str]) -> None:
        """The same of files that were asked in a way that nobody can repeat: any change counts, for
        this one and those that rest on what it says."""
        for path in paths:
            asking.needs.update((path, all_of(path)))

    @contextmanager
    def asked_anew(self) -> Iterator[None]:
        """One file asks another: what that says is the same whoever asks, however many functions
        are being run."""
        before, self.depth = self.depth, ASKED_BY_A_FILE
        self._above += before
        try:
            yield
        finally:
            self._above -= before
            self.depth = before

    @property
    def is_deep(self) -> bool:
        """So many functions are being run that no other one is: nothing is known there."""
        return self._above + self.depth >= _DEEPEST

    def _note(
        self, path: str, answer: Callable[[], object], question: Callable[..., Any], *words: str
    ) -> None:
        if self.answers.wanted:
            self.answers.note(path, text_of(question, *words), answer)

    def _name_of(self, path: str) -> str:
        return module_name(path, self.packages)[0]


def _size_of(module: ProjectFile | None) -> int:
    return len(module.source.data) if module is not None else 0
