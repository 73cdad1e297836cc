"""Parameters without a type that callers give a `torch.device`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.named.device_texts import takes_a_device
from tensortrail.rules.devices.shared.named.device_values import is_device
from tensortrail.rules.shared.functions import matched, parameters
from tensortrail.rules.shared.objects import is_self_or_cls
from tensortrail.rules.view import FunctionNode, Module


def is_given_a_device(module: Module, node: ast.expr) -> bool:
    """A call of the file gives one, or what is said to be one; the function does not make it into
    something else."""
    function = module.function_of(node)
    if function is None or not isinstance(node, ast.Name):
        return False
    own = next((each for each in parameters(function) if each.arg == node.id), None)
    if own is None or own.annotation is not None:
        return False
    if any(isinstance(each.ctx, ast.Store) for each in module.uses(node.id, function)):
        return False
    passed = (pair for call in _calls_of(module, function) for pair in matched(function, call))
    return any(name == node.id and _may_be_one(module, each) for name, each in passed)


def _calls_of(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """By the name of the function, or by that of its class: `Coder.load(path, device)`."""
    cls = module.parent(function)
    for call in module.calls(function.name):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(cls, ast.ClassDef):
            if owner is None:
                yield call
        elif owner is not None:
            inside = is_self_or_cls(owner) and module.class_of(call) is cls
            if inside or module.text(owner) == cls.name:
                yield call


def _may_be_one(module: Module, given: ast.expr) -> bool:
    return is_device(module, given) or takes_a_device(module, given)
