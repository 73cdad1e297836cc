"""Conditions that are made of several, and conditions of two places."""

from __future__ import annotations

import ast
from bisect import bisect_left

from tensortrail.rules.view import Module

_NEAR = 50


def beside(whole: ast.BoolOp, part: ast.AST) -> list[ast.expr]:
    """The other parts of an `and` or `or`, the nearest ones if there are very many."""
    place = (part.lineno, part.col_offset)  # type: ignore[attr-defined]
    at = bisect_left(whole.values, place, key=lambda each: (each.lineno, each.col_offset))
    return whole.values[max(0, at - _NEAR) : at] + whole.values[at + 1 : at + 1 + _NEAR]


def are_exclusive(module: Module, one: ast.AST, other: ast.AST) -> bool:
    """One of them runs only where a condition holds, and the other only where it does not."""
    there = held_at(module, other)
    return any((test, not holds) in there for test, holds in held_at(module, one))


def held_at(module: Module, node: ast.AST) -> set[tuple[str, bool]]:
    """The text of each condition before the node, and whether it holds there."""
    return {(module.text(each.test), each.holds) for each in module.guards_of(node)}
