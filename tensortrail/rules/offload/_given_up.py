"""Objects that the function lets go of after it has moved them."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module


def is_given_up(module: Module, call: ast.Call, subject: ast.expr) -> bool:
    """`self.model = None` behind `model.to("cpu")`: where it would lie otherwise matters to nobody
    who could have asked for it."""
    held = [subject, *module.value_of(subject).origins]
    names = {module.text(each) for each in held if isinstance(each, ast.Attribute)}
    return any(
        isinstance(each.value, ast.Constant)
        and each.value.value is None
        and any(module.text(target) in names for target in each.targets)
        for each in module.later(call, ast.Assign)
    )
