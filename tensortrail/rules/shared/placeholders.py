"""Tensors without an element, which stand for no tensor."""

from __future__ import annotations

import ast

from tensortrail.rules.places import Place
from tensortrail.rules.view import Module


def is_placeholder(module: Module, made: ast.AST | None) -> bool:
    """`torch.empty(0)` or `torch.tensor([])`."""
    size = made.args if isinstance(made, ast.Call) else []
    if len(size) != 1:
        return False
    none = isinstance(size[0], ast.List) and not size[0].elts
    return none or module.value_of(size[0]).constant == 0


def stands_for_nothing(module: Module, made: Place) -> bool:
    """`torch.empty(0)` or `torch.tensor([0])` of one branch is there so that a name is bound."""
    if not made.given or not isinstance(made.by, ast.Call):
        return False
    if isinstance(module.parent(made.by), ast.Attribute):
        return False  # `torch.tensor([0.0]).repeat(n)` is a value of its own
    return is_placeholder(module, made.by) or _holds_one_number(made.by)


def _holds_one_number(made: ast.Call) -> bool:
    data = made.args[0] if len(made.args) == 1 else None
    values = data.elts if isinstance(data, ast.List) else []
    return len(values) == 1 and isinstance(values[0], ast.Constant)
