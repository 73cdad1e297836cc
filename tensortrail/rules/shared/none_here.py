"""Whether a condition says that something is None."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import is_none
from tensortrail.rules.words import Guard


def asked_for_none(guard: Guard) -> tuple[ast.expr, bool] | None:
    """`x` of the condition `x is None` or `x is not None`, and whether it is None where that
    holds; None for any other condition."""
    match guard.test:
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as how], comparators=[other]):
            return (left, guard.holds is isinstance(how, ast.Is)) if is_none(other) else None
    return None
