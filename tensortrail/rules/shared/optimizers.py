"""What is made of the parameters of a model: optimizers, moving averages."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import called, given, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module


def model_behind(module: Module, made: ast.Call) -> str:
    """`model` of `Adam(model.parameters())`, also where the parameters are in groups; "" if the
    call takes no parameters."""
    for argument in (behind(module, each) for each in given(made)):
        calls = [argument] if isinstance(argument, ast.Call) else []
        for call in (*calls, *module.nodes(ast.Call, argument)):
            owner = receiver(call)
            if owner is not None and called(call) in ("parameters", "named_parameters"):
                return module.text(owner)
    return ""
