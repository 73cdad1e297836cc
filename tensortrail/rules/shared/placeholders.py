"""Tensors without an element, or of one that is written out, which stand for no tensor."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module


def is_placeholder(module: Module, made: ast.AST | None) -> bool:
    """`torch.empty(0)` or `torch.tensor([])`."""
    size = made.args if isinstance(made, ast.Call) else []
    if len(size) != 1:
        return False
    none = isinstance(size[0], ast.List) and not size[0].elts
    return none or module.value_of(size[0]).constant == 0


def stands_for_nothing(module: Module, made: ast.AST | None) -> bool:
    """`torch.empty(0)` or `torch.tensor([0])`, so that a name is bound."""
    return is_placeholder(module, made) or (isinstance(made, ast.Call) and _holds_one(made))


def _holds_one(made: ast.Call) -> bool:
    data = made.args[0] if len(made.args) == 1 else None
    values = data.elts if isinstance(data, ast.List) else []
    return len(values) == 1 and isinstance(values[0], ast.Constant)
