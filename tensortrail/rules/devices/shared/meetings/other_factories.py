"""What the other factory calls of a function say of their device."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.rules.devices.shared.calls.customs import MAKERS, is_factory_of_torch, named
from tensortrail.rules.view import FunctionNode, Module

_KEPT = ("torch.cuda", "torch.sparse")
"""What has a device of its own, or that of the values it is given."""


def given_a_device(module: Module, function: FunctionNode, made: ast.Call) -> Sequence[ast.Call]:
    """The other factories of the function, if all of them are given a device that is a value."""
    others = [
        each
        for each in module.calls(*MAKERS, inside=function)
        if each is not made and is_factory_of_torch(module, each)
    ]
    given = [each for each in others if _device_of(each) is not None]
    without = [each for each in others if not {"device", None} & named(each)]
    return [] if without else given


def _device_of(call: ast.Call) -> ast.expr | None:
    for each in call.keywords:
        if each.arg == "device" and not isinstance(each.value, ast.Constant):
            return each.value
    return None


def is_one_of_many(module: Module, function: FunctionNode, made: ast.Call) -> bool:
    """Other factories of the function are given no device either: it may be meant for the CPU."""
    return any(
        each is not made and may_be_given_a_device(module, each)
        for each in module.calls(*MAKERS, inside=function)
        if is_factory_of_torch(module, each)
    )


def may_be_given_a_device(module: Module, call: ast.Call) -> bool:
    """A factory that makes its tensor anew, wherever it is asked to, and was not asked."""
    name = module.qualified(call.func).rpartition(".")[2]
    keeps = name in ("as_tensor", "asarray") or module.qualified(call.func).startswith(_KEPT)
    return (
        is_factory_of_torch(module, call)
        and not keeps
        and not {"device", "pin_memory", None} & named(call)
    )
