"""What the files of a project ask of one another."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from tensortrail.analyzer.facts.reach import Reach
from tensortrail.analyzer.reading.limits import Limit
from tensortrail.analyzer.reading.source import Source
from tensortrail.analyzer.syntax.names import Names
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.places import FunctionPlaces, Held
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import (
    ClassFacts,
    FunctionFacts,
    Guard,
    GuardedStatement,
    Kind,
    Namesake,
    ProjectCall,
    SavedFile,
    Value,
)

A = TypeVar("A")
Kinds = type[ast.AST] | tuple[type[ast.AST], ...]
"""Of a definition: classes, functions, or both."""


class Place(NamedTuple):
    """Where a class or function is defined: the file, and its name there."""

    path: str
    name: str


class KeptPlaces(Protocol):
    """The inferred places of a file."""

    def places(self, function: FunctionNode) -> FunctionPlaces: ...
    def attribute(self, cls: ast.ClassDef, name: str) -> Held: ...
    def called_by(self, call: ast.Call) -> FunctionNode | Place | None: ...
    def method(
        self, cls: ast.ClassDef, name: str, depth: int = 0
    ) -> FunctionNode | Place | None: ...


class KeptUses(Protocol):
    def named_beside(self, package: str, name: str, how: Callable[[bytes], bool]) -> str | None: ...
    def reach(self, package: str) -> Reach | None: ...


class KeptCustoms(Protocol):
    """How functions are called in the files of a project."""

    def calls(self, folder: str, dotted: str, namesakes: bool = False) -> Sequence[ProjectCall]: ...
    def passed(self, folder: str, name: str, keyword: str) -> int: ...
    def moves(self, folder: str, statement: str) -> Sequence[GuardedStatement]: ...
    def gpu_made_default(self, folder: str) -> tuple[str, int] | None: ...
    def for_current_gpu(self, folder: str) -> Sequence[str]: ...
    def builds_on_device(self, folder: str) -> str | None: ...
    def numbered_gpus(self, folder: str) -> dict[str, int]: ...
    def of_one_program(self, folder: str, path: str) -> Iterator[str]: ...
    def text_in(self, folder: str, path: str) -> bytes: ...
    def is_written(self, folder: str, word: str, how: re.Pattern[bytes]) -> str | None: ...
    def defined(self, folder: str, path: str, dotted: str) -> int: ...
    def texts(self, folder: str) -> Iterable[bytes]: ...
    def namesakes(self, folder: str, name: str) -> Sequence[Namesake]: ...
    def times_called(self, folder: str, name: str) -> int: ...
    def files_calling(
        self, folder: str, name: str, owner: str, of_class: bool
    ) -> Sequence[str]: ...
    def passed_in_file(self, folder: str, path: str) -> Counter[tuple[bytes, bytes]]: ...


class KeptSaves(Protocol):
    """The files that a project writes."""

    def around(
        self, file: ProjectFile, question: Callable[[ProjectFile], list[SavedFile]]
    ) -> Sequence[SavedFile]: ...


@unchanging(frozen=True, slots=True)
class KnownClass:
    """The facts of a class, and the files they rest on."""

    facts: ClassFacts | None
    read: frozenset[str]


class OtherFiles(Protocol):
    """The files around one file."""

    limit: Limit
    depth: int

    @property
    def customs(self) -> KeptCustoms: ...
    @property
    def uses(self) -> KeptUses: ...
    @property
    def saves(self) -> KeptSaves: ...

    @property
    def is_deep(self) -> bool: ...
    def asked_anew(self) -> AbstractContextManager[None]: ...
    def module_at(self, path: str) -> ProjectFile | None: ...
    def class_named(self, asking: ProjectFile, dotted: str) -> KnownClass | None: ...
    def about(self, asking: ProjectFile, dotted: str, question: Question[A]) -> A | None: ...
    def defined(self, asking: ProjectFile, dotted: str, kinds: Kinds) -> Place | None: ...
    def named_in(
        self, asking: ProjectFile, path: str, dotted: str, kinds: Kinds
    ) -> Place | None: ...
    def asked_at(
        self, asking: ProjectFile, place: Place, question: Callable[..., A], *words: str
    ) -> A | None: ...
    def rest_on(
        self,
        asking: ProjectFile,
        path: str,
        answer: Callable[[], object],
        question: Callable[..., Any],
        *words: str,
    ) -> None: ...
    def rest_on_all_of(self, asking: ProjectFile, paths: Iterable[str]) -> None: ...


class ProjectFile(Protocol):
    """A file that is read and indexed."""

    path: str
    name: str
    root: str | None
    needs: set[str]
    absent: set[str]
    rested_on: set[frozenset[str]]
    running: int
    """How many of its functions are being run: until then, what they say is half known."""
    asked_early: int
    """How often a function was asked that was being run."""
    names: Names
    source: Source
    tree: Tree

    @property
    def project(self) -> OtherFiles: ...
    @property
    def places_of_file(self) -> KeptPlaces: ...
    def calls(self, *names: str, inside: ast.AST | None = None) -> Iterator[ast.Call]: ...
    def qualified(self, node: ast.AST) -> str: ...
    def local_name(self, name: str) -> str: ...
    def definition_named(self, dotted: str) -> ast.AST | None: ...
    def value_of(self, node: ast.expr) -> Value: ...
    def kind_of(self, node: ast.expr) -> Kind: ...
    def guards_of(self, node: ast.AST) -> Sequence[Guard]: ...
    def global_value(self, name: str) -> Value: ...
    def assigned(self, cls: ast.ClassDef, name: str) -> Value: ...
    def class_facts(self, cls: ast.ClassDef | str) -> ClassFacts | None: ...
    def facts_of_function(self, node: FunctionNode) -> FunctionFacts | None: ...
    def result_of_function(self, node: FunctionNode) -> Value: ...
    def kind_of_class_named(self, name: str) -> Kind | None: ...
    def release(self) -> None: ...


Question: TypeAlias = Callable[[ProjectFile, ast.AST], A]
"""About a class or function and the file that defines it. It has to be a function of a module:
answers are kept by it."""
