"""The walk over all nodes of a tree, and what one pass over it tells of each node."""

from __future__ import annotations

import ast
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Numbers = Sequence[int]
"""Of nodes, in the order of the walk. As an array they take a tenth of what a list of them does."""

_NO_NODES = frozenset(
    "id ctx attr arg asname module level op ops type_comment kind conversion simple is_async "
    "kwd_attrs rest type_ignores".split()
)
"""Fields of plain values, and of contexts and operators, of which ast shares one for all places."""


class _ChildFields(dict[type[ast.AST], tuple[str, ...]]):
    """For each type of node the fields that may hold nodes, from the last to the first."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        if issubclass(kind, (ast.Constant, ast.Global, ast.Nonlocal, ast.MatchSingleton)):
            found: tuple[str, ...] = ()
        else:
            plain = _NO_NODES if kind.__name__ == "TypeAlias" else _NO_NODES | {"name"}
            found = tuple(name for name in reversed(kind._fields) if name not in plain)
        self[kind] = found
        return found


_child_fields = _ChildFields()


class Walked(NamedTuple):
    """All nodes, parents before children, with what one pass over them tells."""

    order: list[ast.AST]
    parents: Numbers
    """For each node the number of its parent."""
    numbers: Mapping[type[ast.AST], Numbers]
    """The numbers of the nodes of each type."""


class _Found(dict[type[ast.AST], tuple[tuple[str, ...], Callable[[int], None]]]):
    """For each type of node its fields, and what takes down the number of one."""

    def __init__(self) -> None:
        self.numbers: dict[type[ast.AST], array[int]] = {}

    def __missing__(self, kind: type[ast.AST]) -> tuple[tuple[str, ...], Callable[[int], None]]:
        numbers = self.numbers[kind] = array("i")
        self[kind] = found = _child_fields[kind], numbers.append
        return found


def in_order(node: ast.AST) -> Sequence[ast.AST]:
    """The node and all below it, parents before children; for a node of no tree at hand."""
    return walk(node).order


def walk(root: ast.AST) -> Walked:
    """Contexts and operators are left out: ast shares one object for all places."""
    order: list[ast.AST] = []
    parents = array("i")
    found = _Found()
    nodes: list[ast.AST] = [root]
    above = [0]
    number = 0
    while nodes:  # over all nodes of all files: two stacks of plain objects, and few calls
        node = nodes.pop()
        parents.append(above.pop())
        order.append(node)
        fields, take_down = found[node.__class__]
        take_down(number)
        for name in fields:
            value = getattr(node, name, None)
            if value is None:
                continue
            if value.__class__ is not list:
                nodes.append(value)
                above.append(number)
            elif value:
                below = value[::-1]
                if None in below:
                    below = [each for each in below if each is not None]
                nodes += below
                above += [number] * len(below)
        number += 1
    return Walked(order, parents, found.numbers)


def last_below(node: ast.AST) -> ast.AST:
    """The node that comes last of it and all below it."""
    while (child := _last_child(node)) is not None:
        node = child
    return node


def _last_child(node: ast.AST) -> ast.AST | None:
    for name in _child_fields[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            value = next((each for each in reversed(value) if each is not None), None)
        if value is not None:
            found: ast.AST = value
            return found
    return None
