"""The syntax tree of a file with the ways through it: up, sideways, by type, in running order."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from tensortrail.analyzer.syntax.blocks import SCOPES
from tensortrail.analyzer.syntax.running_order import RunningOrder
from tensortrail.analyzer.syntax.said_names import SaidNames
from tensortrail.rules.view import FunctionNode

__all__ = ["SCOPES", "Tree"]
N = TypeVar("N", bound=ast.AST)
A = TypeVar("A")


class Tree(RunningOrder, SaidNames):
    def __init__(self, root: ast.Module) -> None:
        super().__init__(root)
        self._answers: dict[tuple[Callable[..., Any], ast.AST], Any] = {}

    def once(self, question: Callable[[Tree, N], A], about: N) -> A:
        """`question(tree, about)`, answered once."""
        if (question, about) not in self._answers:
            self._answers[question, about] = question(self, about)
        answer: A = self._answers[question, about]
        return answer

    @cached_property
    def definitions(self) -> dict[str, ast.AST]:
        """Classes and functions by their dotted name in the file; the first of a name."""
        found: dict[str, ast.AST] = {}
        for name, node in self._outline.definitions:
            found.setdefault(name, node)
        return found

    @cached_property
    def top(self) -> FunctionNode:
        """What runs when the file itself does, as if it were the body of a function."""
        body = [each for each in self.root.body if not isinstance(each, (*SCOPES, ast.ClassDef))]
        made = ast.parse("def top(): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.name, made.body = "<module>", body or made.body
        return made

    @cached_property
    def _qualnames(self) -> dict[ast.AST, str]:
        return {node: name for name, node in self._outline.definitions}

    def imports(self) -> list[ast.AST]:
        """Every import statement, wherever it stands."""
        return self._outline.imports

    def qualname_of(self, node: ast.AST) -> str:
        """The "Class.method" of a definition, or of the definition around a node."""
        if node not in self._qualnames:  # of a file that is asked for one class no node is counted
            number = self._number.get(node)  # None for a condition that a `case` stands for
            node = (self._definitions_around[number] if number is not None else None) or self.root
        return self._qualnames.get(node, "")
