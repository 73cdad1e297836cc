"""Modules of the project that a constructor keeps, and the device that it keeps beside them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.calls.accepted import accepting, passes_on
from tensortrail.rules.devices.shared.written_for.device_aware import is_in_module
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.moves import MODULE_TO_DEVICE
from tensortrail.rules.shared.objects import is_self
from tensortrail.rules.view import FunctionNode, Module


def is_a_part(module: Module, call: ast.Call) -> bool:
    """`self.spread = Spread(n)`, of a module of the project."""
    above = module.parent(call)
    targets = above.targets if isinstance(above, ast.Assign) else []
    own = any(isinstance(each, ast.Attribute) and is_self(each.value) for each in targets)
    facts = module.class_facts(module.qualified(call.func)) if own else None
    return facts is not None and facts.is_module


def parts_without_device(
    module: Module, function: FunctionNode
) -> Iterator[tuple[ast.Call, ast.Assign]]:
    """`self.last = Layers(n)`, which takes a `device`, after `self.device = device`: where nothing
    else of the constructor is given the device, and nothing is moved to it."""
    named = any(each.arg == "device" for each in parameters(function))
    if function.name != "__init__" or not named or not is_in_module(module, function):
        return
    kept = next(filter(_is_kept, module.nodes(ast.Assign, function)), None)
    calls = list(module.nodes(ast.Call, function))
    moved = any(True for _ in module.calls(*MODULE_TO_DEVICE, inside=function))
    if kept is None or moved or any(passes_on(each, "device") for each in calls):
        return
    for call in accepting(module, function, "device"):
        if is_a_part(module, call) and "device" not in module.chosen_defaults_of(call):
            yield call, kept


def _is_kept(statement: ast.Assign) -> bool:
    value, target = statement.value, statement.targets[0]
    own = isinstance(target, ast.Attribute) and is_self(target.value)
    return own and isinstance(value, ast.Name) and value.id == "device"
