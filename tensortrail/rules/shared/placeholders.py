"""Tensors without an element, which stand for no tensor."""

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
