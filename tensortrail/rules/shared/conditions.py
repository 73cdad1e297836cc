"""Conditions that are made of several."""

from __future__ import annotations

import ast
from bisect import bisect_left

_NEAR = 50


def beside(whole: ast.BoolOp, part: ast.AST) -> list[ast.expr]:
    """The other parts of an `and` or `or`, the nearest ones if there are very many."""
    place = (part.lineno, part.col_offset)  # type: ignore[attr-defined]
    at = bisect_left(whole.values, place, key=lambda each: (each.lineno, each.col_offset))
    return whole.values[max(0, at - _NEAR) : at] + whole.values[at + 1 : at + 1 + _NEAR]
