"""What accelerate prepares."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import Module


def is_prepared(module: Module, call: ast.Call) -> bool:
    """`accelerator.prepare(model)` wraps the model in a run of several processes."""
    owner = receiver(call) if called(call) == "prepare" else None
    if owner is None:
        return False
    made = list(module.value_of(owner).origins)
    return any(
        isinstance(each, ast.Call) and module.qualified(each.func).endswith(".Accelerator")
        for each in made
    )
