"""The walk over all nodes of a tree, and what one pass over it tells of each node."""

from __future__ import annotations

import ast
from array import array
from collections.abc import Sequence

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


def in_order(node: ast.AST) -> Sequence[ast.AST]:
    """The node and all below it, parents before children; for a node of no tree at hand."""
    return walk(node)[0]


def walk(root: ast.AST) -> tuple[list[ast.AST], Numbers]:
    """All nodes, parents before children, and the number of each one's parent.

    Contexts and operators are left out: ast shares one object for all places."""
    order: list[ast.AST] = []
    parents: list[int] = []
    nodes: list[ast.AST] = [root]
    above = [0]
    while nodes:  # over all nodes of all files: two stacks of plain objects, and no calls
        node = nodes.pop()
        parents.append(above.pop())
        number = len(order)
        order.append(node)
        for name in _child_fields[node.__class__]:
            value = getattr(node, name, None)
            if value is None:
                continue
            if value.__class__ is list:
                below = [each for each in value[::-1] if each is not None]
                nodes += below
                above += [number] * len(below)
            else:
                nodes.append(value)
                above.append(number)
    return order, array("i", parents)


def innermost(
    order: list[ast.AST], parents: Numbers, kinds: tuple[type[ast.AST], ...]
) -> list[ast.AST | None]:
    """For each node of the walk the innermost one of these types that it is or stands in."""
    found: list[ast.AST | None] = []
    for node, parent in zip(order, parents, strict=True):
        found.append(node if isinstance(node, kinds) else found[parent] if found else None)
    return found


def ends_of_subtrees(parents: Numbers) -> Numbers:
    """For each node the number of the last one below it."""
    last = array("i", range(len(parents)))
    for number in range(len(parents) - 1, 0, -1):
        parent = parents[number]
        last[parent] = max(last[parent], last[number])
    return last
