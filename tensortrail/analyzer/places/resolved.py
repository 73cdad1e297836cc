"""The functions and classes of the project that the names and calls of one file stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

from tensortrail.analyzer.facts.project_file import Kinds, ProjectFile
from tensortrail.analyzer.facts.project_file import Place as InProject
from tensortrail.analyzer.places import outside
from tensortrail.analyzer.places.attributes.stored_attributes import class_kept
from tensortrail.analyzer.places.functions.made_objects import maker_of
from tensortrail.analyzer.syntax.tree import SCOPES, Tree
from tensortrail.rules.view import FunctionNode

A = TypeVar("A")
_DEEPEST = 6
"""Bases of bases that are asked for a method."""


class Resolved:
    """Looks them up in the file itself, or asks the file where they are defined."""

    def __init__(self, module: ProjectFile) -> None:
        self._module = module
        self.tree: Tree = module.tree

    def qualified(self, node: ast.AST) -> str:
        return self._module.qualified(node)

    def runs(self, call: ast.Call) -> FunctionNode | InProject | None:
        """The function of the project that the call runs, if it is known: of this file, or where
        it is in another one."""
        dotted = self.qualified(call.func)
        first, _, rest = dotted.partition(".")
        if first == "self" and rest:
            cls = self.tree.class_of(call)
            return self._method_of_self(cls, rest) if cls is not None else None
        if not dotted or first in ("torch", "numpy", "math", "os", "self", "cls"):
            return None
        place = self._place(dotted, SCOPES)
        found: FunctionNode | InProject | None = self._own_or_place(place)
        return found

    def called_by(self, call: ast.Call) -> FunctionNode | InProject | None:
        """The same, also of an object that is made just there, or under a name of its own:
        `Net(8).step(x)`, `net.step(x)`."""
        func = call.func
        maker = maker_of(self.tree, func.value) if isinstance(func, ast.Attribute) else None
        if maker is None:
            return self.runs(call)
        place = self._place(self.qualified(maker.func), ast.ClassDef)
        return self._method_in(place, func.attr)  # type: ignore[attr-defined]

    def made_by(self, call: ast.Call) -> InProject | None:
        """The class of which the call makes an object."""
        return self._place(self.qualified(call.func), ast.ClassDef)

    def _method_of_self(self, cls: ast.ClassDef, name: str) -> FunctionNode | InProject | None:
        """`self.step()`, and `self.detect.step()` of an object that the class makes."""
        kept, _, of_kept = name.partition(".")
        if not of_kept:
            return self.method(cls, name)
        maker = class_kept(self.tree, cls, kept) if "." not in of_kept else None
        place = self._place(self.qualified(maker), ast.ClassDef) if maker is not None else None
        return self._method_in(place, of_kept)

    def method(
        self, cls: ast.ClassDef, name: str, depth: int = 0
    ) -> FunctionNode | InProject | None:
        """The method of the class or of a base of it."""
        for statement in cls.body:
            if isinstance(statement, SCOPES) and statement.name == name:
                return statement
        for base in cls.bases if depth < _DEEPEST else ():
            place = self._place(self.qualified(base), ast.ClassDef)
            method = self._method_in(place, name, depth + 1)
            if method is not None:
                return method
        return None

    def _method_in(
        self, cls: InProject | None, name: str, depth: int = 0
    ) -> FunctionNode | InProject | None:
        own = self._own_or_place(cls)
        if isinstance(own, ast.ClassDef):
            return self.method(own, name, depth)
        place = self._ask(cls, outside.method_of, name, str(depth))
        found: FunctionNode | InProject | None = self._own_or_place(place)
        return found

    def _own_or_place(self, place: InProject | None) -> Any:
        """The definition itself, if it is one of this file."""
        if place is None or place.path != self._module.path:
            return place
        return self._module.definition_named(place.name)

    def _ask(self, place: InProject | None, question: Callable[..., A], *words: str) -> A | None:
        if place is None:
            return None
        return self._module.project.asked_at(self._module, place, question, *words)

    def _place(self, dotted: str, kinds: Kinds) -> InProject | None:
        """Where the class or function is that the name stands for."""
        if not dotted:
            return None
        local = dotted.removeprefix(f"{self._module.name}.") if self._module.name else dotted
        node = self._module.definition_named(local)
        if node is not None:
            return InProject(self._module.path, local) if isinstance(node, kinds) else None
        if "." not in dotted or dotted.startswith(("torch.", "numpy.")):
            return None
        return self._module.project.defined(self._module, dotted, kinds)
