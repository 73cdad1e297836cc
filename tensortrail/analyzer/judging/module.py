"""One Python file with meaning: what rules ask is answered here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

from tensortrail.analyzer.facts import known
from tensortrail.analyzer.facts.class_lookup import Classes
from tensortrail.analyzer.facts.classes import kind_of_class
from tensortrail.analyzer.facts.offload_switches import OffloadSettings
from tensortrail.analyzer.facts.project import Project
from tensortrail.analyzer.fixing import edits
from tensortrail.analyzer.fixing.still_parses import Checker
from tensortrail.analyzer.judging.callee_signatures import AsksForSignatures
from tensortrail.analyzer.judging.callees import AsksForCallees
from tensortrail.analyzer.judging.project_calls import AsksForProjectCalls
from tensortrail.analyzer.judging.project_gpus import AsksForGpus
from tensortrail.analyzer.judging.project_saves import AsksForSaves
from tensortrail.analyzer.judging.project_uses import AsksForUses
from tensortrail.analyzer.places.asked import AsksForPlaces
from tensortrail.analyzer.reading.parsing import kept
from tensortrail.analyzer.reading.source import Source
from tensortrail.analyzer.reading.texts import Texts
from tensortrail.analyzer.syntax.call_index import CallIndex
from tensortrail.analyzer.syntax.guards import Guards
from tensortrail.analyzer.syntax.names import Names, module_name
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values.attributes import Attributes
from tensortrail.analyzer.values.calls import argument_named
from tensortrail.findings import Edit, Fix, Safety
from tensortrail.rules.project_facts import ClassFacts, OffloadSetting
from tensortrail.rules.words import Branch, Guard, Kind, Value

N = TypeVar("N", bound=ast.AST)
A = TypeVar("A")
_A_FIX = 100
"""Questions that cost as much as seeing whether a file still parses with a fix."""
_REFER_BACK = (
    "_flows _classes _attributes _guards _offload_settings _places _calls _answers "
    "_passed_elsewhere _given_elsewhere _switched_off"
).split()


class PythonModule(
    AsksForCallees,
    AsksForPlaces,
    AsksForProjectCalls,
    AsksForUses,
    AsksForGpus,
    AsksForSaves,
    AsksForSignatures,
):
    """Implements the `Module` view of the rules, and the `World` of the evaluator."""

    def __init__(self, path: str, data: bytes, project: Project) -> None:
        super().__init__()
        self.path = path
        self.project = project
        self.tick: Callable[[], None] = project.limit.tick
        """Something was asked: work on one file has a limit."""
        self.needs: set[str] = set()
        """Other files whose facts were consulted."""
        self.absent: set[str] = set()
        """Words that no other file of the project has, on which findings rest."""
        self.rested_on: set[frozenset[str]] = set()
        """Sets of files that are in `needs` already."""
        self.source = Source(path, data)
        self.kept = kept(data, project.words, project.limit)
        """What is judged of the file: all of it, unless it is very large."""
        self.tree = project.trees.of(path, self.kept)
        self.name, self.root = module_name(path, project.packages)
        self.names = self._collect_names()
        self._classes = Classes(self)
        self._attributes = Attributes(self)
        self._guards = Guards(self.tree, lambda name: self.value_of(name).origins)
        self._offload_settings = OffloadSettings(self)

    def release(self) -> None:
        """Nothing more will be asked: let go of what refers back here, as no collector runs."""
        for name in _REFER_BACK:
            vars(self).pop(name, None)

    # --- calls ---------------------------------------------------------------------------
    def calls(self, *names: str, inside: ast.AST | None = None) -> Iterator[ast.Call]:
        return self._calls.named(names, *self.tree.numbers(ast.Call, inside))

    @cached_property
    def _calls(self) -> CallIndex:
        return CallIndex(self.tree.nodes(ast.Call), self.qualified)

    def _collect_names(self) -> Names:
        is_package = self.path.endswith("__init__.py")
        names = Names(self.name, is_package, self.tree.imports())
        names.define(
            node.name for node in self.tree.root.body if isinstance(node, (ast.ClassDef, *SCOPES))
        )
        names.follow(self.tree.root.body)
        return names

    def guards_of(self, node: ast.AST) -> Sequence[Guard]:
        return self._guards.of(node)

    def branches(self, inside: ast.AST | None = None) -> Iterator[Branch]:
        return self._guards.branches(inside)

    # --- facts ---------------------------------------------------------------------------
    def class_facts(self, cls: ast.ClassDef | str) -> ClassFacts | None:
        return self._classes.facts(cls if isinstance(cls, str) else self._class_name(cls))

    def kind_of_class_named(self, name: str) -> Kind | None:
        last = name.rpartition(".")[2]
        if self.definition_named(last) is None and not known.CLASS_WORTH_READING.search(last):
            return None
        return kind_of_class(self.class_facts(name))

    def attribute_of_class(self, cls: str, name: str) -> Value:
        return self._attributes.of_class(cls, name)

    def assigned(self, cls: ast.ClassDef, name: str) -> Value:
        return self._attributes.assigned(cls, name)

    def offload_settings(self, node: ast.AST) -> Sequence[OffloadSetting]:
        return self._offload_settings.at(node)

    def argument(self, call: ast.Call, position: int, name: str) -> ast.expr | None:
        return argument_named(call, (*("",) * position, name), name)

    # --- edits ---------------------------------------------------------------------------
    def fix(self, description: str, safety: Safety, *made: Edit) -> Fix | None:
        if not self.source.editable or not made:
            return None
        self.project.limit.tick(_A_FIX)
        ending = tuple(edits.with_line_ends(self.source, edit) for edit in made)
        return Fix(description, safety, ending) if self._parses_with(ending) else None

    @cached_property
    def _parses_with(self) -> Callable[[Sequence[Edit]], bool]:
        return Checker(self.source, self.tree.root).holds

    def wrap_in_if(self, statement: ast.stmt, condition: str, safety: Safety) -> Fix | None:
        edit = edits.under_if(self.source, statement, condition)
        return self.fix(f"guard with `if {condition}:`", safety, *([edit] if edit else ()))

    def wrap_in_try_finally(self, first: ast.stmt, last: ast.stmt, safety: Safety) -> Fix | None:
        edit = edits.under_try_finally(self.source, first, last)
        return self.fix("restore in `finally`", safety, *([edit] if edit else ()))


def open_project(words: Collection[bytes] = (b"",), texts: Texts | None = None) -> Project:
    """The files around those that are judged; of none more than its text is read yet."""
    return Project(PythonModule, words, texts)
