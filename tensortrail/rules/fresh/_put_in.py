"""New layers and parameters that are put into a model that exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.layers import WITH_PARAMETERS
from tensortrail.rules.shared.moves import MODULE_MOVES
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import Module

_WITH_WEIGHTS = (*WITH_PARAMETERS, "Parameter", "Sequential")
_REGISTERING = ("add_module", "register_module", "register_parameter")


def put_after(module: Module, after: ast.AST, model: str) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Those that may be put there after a point: the statement, and what makes the layer."""
    function = module.function_of(after)
    for later in module.later(after, ast.Assign):
        if module.function_of(later) is not function:
            continue
        target, layer = later.targets[0], _layer(module, later.value)
        if layer is not None and module.text(target).startswith((f"{model}.", f"{model}[")):
            yield later, layer
    for call in module.later(after, ast.Call):
        if module.function_of(call) is not function:
            continue
        owner, value = _registered(module, call)
        layer = _layer(module, value) if value is not None else None
        if owner is not None and layer is not None and _is_in(module.text(owner), model):
            yield call, layer


def _registered(module: Module, call: ast.Call) -> tuple[ast.expr | None, ast.expr | None]:
    """Owner and value of `setattr(net, name, layer)` and `net.add_module(name, layer)`."""
    match call:
        case ast.Call(func=ast.Name(id="setattr"), args=[owner, _, value]):
            return owner, value
    if called(call) not in _REGISTERING:
        return None, None
    named = "param" if called(call) == "register_parameter" else "module"
    return receiver(call), module.argument(call, 1, named)


def _is_in(owner: str, model: str) -> bool:
    return owner == model or owner.startswith((f"{model}.", f"{model}["))


def _layer(module: Module, value: ast.expr) -> ast.Call | None:
    """What makes a layer with parameters, if the value is a new one, wherever it is moved."""
    while isinstance(value, ast.Call) and called(value) in MODULE_MOVES:
        value = receiver(value) or value.func
    if not isinstance(value, ast.Call):
        return None
    name = module.qualified(value.func)
    known = any(part in name.rpartition(".")[2] for part in _WITH_WEIGHTS)
    return value if known and name.startswith("torch.nn.") else None
