"""Whether the values of a name are read after a statement, before it is bound anew."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.values import reads_values
from tensortrail.rules.view import Module


def is_read_after(module: Module, change: ast.stmt, name: str) -> bool:
    """Its values, before it is bound anew."""
    for each in module.later(change, ast.Name):
        if each.id != name:
            continue
        if isinstance(each.ctx, ast.Store) and not _is_changed_here(module, each):
            return _reads(module, module.statement_of(each), name)
        if reads_values(module, each):
            return True
    return False


def _is_changed_here(module: Module, node: ast.Name) -> bool:
    return isinstance(module.statement_of(node), ast.AugAssign)


def _reads(module: Module, statement: ast.stmt, name: str) -> bool:
    value = getattr(statement, "value", None)
    return value is not None and any(
        isinstance(each, ast.Name) and each.id == name and reads_values(module, each)
        for each in ast.walk(value)
    )
