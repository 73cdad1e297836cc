"""What is made of the parameters of a model: optimizers, moving averages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

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


class Optimizer(NamedTuple):
    """`adam = Adam(model.parameters())`."""

    bound: ast.Assign
    made: ast.Call
    model: str


def optimizers_of_models(module: Module) -> Iterator[Optimizer]:
    for assign in module.nodes(ast.Assign):
        made = assign.value
        if isinstance(made, ast.Call) and is_optimizer(module, made):
            model = model_behind(module, made)
            if model:
                yield Optimizer(assign, made, model)


def is_optimizer(module: Module, made: ast.Call) -> bool:
    return module.qualified(made.func).startswith("torch.optim.")


def trains_on(module: Module, assign: ast.Assign, after: ast.AST) -> bool:
    """Steps are made with the optimizer of the assignment behind this point, and it is neither
    made again nor given more parameters."""
    name = module.text(assign.targets[0])
    if any(name in map(module.text, each.targets) for each in module.later(after, ast.Assign)):
        return False
    calls = {called(e) for e in module.later(after, ast.Call) if is_asked_of(module, e, name)}
    return "step" in calls and "add_param_group" not in calls


def is_asked_of(module: Module, call: ast.Call, name: str) -> bool:
    """`optimizer.step()`, by the name of the optimizer."""
    owner = receiver(call)
    return owner is not None and module.text(owner) == name
