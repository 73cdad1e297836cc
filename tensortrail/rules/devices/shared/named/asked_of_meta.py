"""Branches that are meant for tensors with bytes, `if x.device != "meta":`, and what is lost if
they are taken on meta too."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module

_READS = frozenset(
    "item tolist numpy nonzero unique equal masked_select bincount cpu cuda to copy_ print save "
    "save_file dump int float bool str len".split()
)
"""What fails on meta, or takes what is not there for values."""


def is_nothing_on_meta(module: Module, compare: ast.expr, names: Iterable[ast.expr]) -> bool:
    """The arm that is always taken only computes, and what is computed on meta stays there."""
    up = module.parent(compare)
    if not isinstance(up, ast.If) or up.test is not compare or up.orelse:
        return False
    if not isinstance(compare, ast.Compare) or not isinstance(compare.ops[0], ast.NotEq):
        return False
    only_meta = all(module.value_of(each).constant == "meta" for each in names)
    return only_meta and not any(map(_reads_values, up.body))


def _reads_values(statement: ast.stmt) -> bool:
    return any(
        isinstance(each, (ast.Raise, ast.Return, ast.If, ast.While, ast.Assert))
        or (isinstance(each, ast.Call) and called(each) in _READS)
        for each in ast.walk(statement)
    )
