"""The nodes of a syntax tree in the order of a walk, by their types, and the way up."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TypeVar

from tensortrail.analyzer.syntax.walk import Numbers, Walked, last_below, walk

N = TypeVar("N", bound=ast.AST)
_ABSTRACT = frozenset({ast.AST, ast.stmt, ast.expr, ast.pattern, ast.excepthandler})


class Numbered:
    """The walk over all nodes is put off until something asks for it."""

    def __init__(self, root: ast.Module) -> None:
        self.root = root
        self._by_type: dict[type[ast.AST], tuple[list[ast.AST], Numbers]] = {}
        self._ends: dict[ast.AST, int] = {}
        self._ranges: dict[tuple[type[ast.AST], ast.AST], tuple[int, int]] = {}

    @cached_property
    def _walked(self) -> Walked:
        return walk(self.root)

    @property
    def _order(self) -> list[ast.AST]:
        return self._walked.order

    @cached_property
    def _number(self) -> dict[ast.AST, int]:
        return dict(zip(self._order, range(len(self._order)), strict=True))

    def _last(self, node: ast.AST) -> int:
        """The number of the last node below it."""
        if node not in self._ends:
            self._ends[node] = self._number[last_below(node)]
        return self._ends[node]

    def nodes(self, kind: type[N], inside: ast.AST | None = None) -> Sequence[N]:
        if inside is None:
            return self._of_type(kind)[0]
        start, end = self.numbers(kind, inside)
        return self._of_type(kind)[0][start:end]

    def numbers(self, kind: type[ast.AST], inside: ast.AST | None) -> tuple[int, int]:
        """From which to which of all nodes of that type stand strictly below `inside`."""
        if inside is None:
            return 0, len(self._of_type(kind)[0])
        found = self._ranges.get((kind, inside))
        if found is None:
            number = 0 if inside is self.__dict__.get("top") else self._number[inside]
            found = self._between(number + 1, self._last(inside), kind)[1:]
            self._ranges[kind, inside] = found
        return found

    def _of_type(self, kind: type[N]) -> tuple[list[N], Numbers]:
        if kind not in self._by_type:
            order, _, numbers = self._walked
            found = numbers.get(kind, ())
            if kind in _ABSTRACT:
                found = sorted(
                    chain(*(numbers[each] for each in numbers if issubclass(each, kind)))
                )
            self._by_type[kind] = [order[number] for number in found], found
        return self._by_type[kind]  # type: ignore[return-value]

    def _between(self, first: int, last: int, kind: type[N]) -> tuple[list[N], int, int]:
        """All nodes of that type, and from where to where they have these numbers."""
        nodes, numbers = self._of_type(kind)
        return nodes, bisect_left(numbers, first), bisect_right(numbers, last)

    def _forwards(self, first: ast.AST, last: ast.AST, kind: type[N]) -> Iterator[N]:
        """What stands from the beginning of one node to the end of another one."""
        number, end_number = self._number[first], self._last(last)
        nodes, start, end = self._between(number, end_number, kind)
        return (nodes[at] for at in range(start, end))

    def _backwards(self, first: ast.AST, last: ast.AST, kind: type[N]) -> Iterator[N]:
        number, end_number = self._number[first], self._last(last)
        nodes, start, end = self._between(number, end_number, kind)
        return (nodes[at] for at in range(end - 1, start - 1, -1))

    def below(self, node: ast.AST) -> Sequence[ast.AST]:
        """The node and all below it, parents before children."""
        return self._order[self._number[node] : self._last(node) + 1]

    def parent(self, node: ast.AST) -> ast.AST | None:
        number = self._number.get(node)
        order, parents, _ = self._walked
        return order[parents[number]] if number else None

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        number = self._number.get(node)
        order, parents, _ = self._walked
        while number:  # neither the root nor a node of no tree
            number = parents[number]
            yield order[number]
