"""The function, class and statement that a node of a syntax tree stands in."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain

from tensortrail.analyzer.syntax.blocks import SCOPES
from tensortrail.analyzer.syntax.numbered import Numbered
from tensortrail.rules.view import FunctionNode


class Enclosing(Numbered):
    def function_of(self, node: ast.AST) -> FunctionNode | None:
        return self._above(node, self._functions)  # type: ignore[return-value]

    def outermost_function_of(self, node: ast.AST) -> FunctionNode | None:
        """The function with no function around it: the unit that flow is run over."""
        number = self._number.get(node)
        return self._outermost[number] if number is not None else None  # type: ignore[return-value]

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        return self._above(node, self._class_nodes)  # type: ignore[return-value]

    def statement_of(self, node: ast.AST) -> ast.stmt:
        number = self._number[node]
        order, parents, _ = self._walked
        while not isinstance(order[number], (ast.stmt, ast.Module)):
            number = parents[number]
        return order[number]  # type: ignore[return-value]

    def _above(self, node: ast.AST, innermost: Sequence[ast.AST | None]) -> ast.AST | None:
        number = self._number.get(node)
        return innermost[self._walked.parents[number]] if number else None

    @cached_property
    def _functions(self) -> list[ast.AST | None]:
        return self._innermost(*SCOPES)

    @cached_property
    def _class_nodes(self) -> list[ast.AST | None]:
        return self._innermost(ast.ClassDef)

    @cached_property
    def _definitions_around(self) -> list[ast.AST | None]:
        return self._innermost(*SCOPES, ast.ClassDef)

    def _innermost(self, *kinds: type[ast.AST]) -> list[ast.AST | None]:
        """For each node the innermost one of these types that it is or stands in."""
        found: list[ast.AST | None] = [None] * len(self._order)
        for number in self._numbers_of(kinds):  # what stands inside comes later
            self._fill(found, number)
        return found

    @cached_property
    def _outermost(self) -> list[ast.AST | None]:
        found: list[ast.AST | None] = [None] * len(self._order)
        for number in self._numbers_of(SCOPES):
            if found[number] is None:
                self._fill(found, number)
        return found

    def _numbers_of(self, kinds: Iterable[type[ast.AST]]) -> list[int]:
        return sorted(chain(*(self._walked.numbers.get(each, ()) for each in kinds)))

    def _fill(self, found: list[ast.AST | None], number: int) -> None:
        node = self._order[number]
        end = self._last(node) + 1
        found[number:end] = [node] * (end - number)
