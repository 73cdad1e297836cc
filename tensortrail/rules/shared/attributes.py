"""Attributes of a class, asked for in its methods."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import is_self
from tensortrail.rules.view import Module


def is_read_elsewhere(module: Module, cls: ast.ClassDef, target: ast.Attribute) -> bool:
    """`self.scale` is bound in one method and read in another."""
    method = module.function_of(target)
    return any(
        is_self(each.value)
        and isinstance(each.ctx, ast.Load)
        and module.function_of(each) not in (None, method)
        for each in module.members(target.attr, cls)
    )
