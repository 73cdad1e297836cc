"""Calls that answer on a device which they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.places import Place, Where
from tensortrail.rules.shared.functions import called_here, matched, own_returns
from tensortrail.rules.shared.given_devices import is_used_as_device
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind


def returned_on_given_device(
    module: Module, function: FunctionNode
) -> tuple[ast.expr, Place] | None:
    """What the function returns of a call that it gives a device: `return pooled(x, device)`."""
    for statement in own_returns(module, function):
        call = behind(module, statement.value) if statement.value is not None else None
        if isinstance(call, ast.Call):
            for device in _devices_given(module, call):
                return call, Place(Where.DEVICE, device.id, call)
    return None


def _devices_given(module: Module, call: ast.Call) -> Iterator[ast.Name]:
    """Variables that the call passes as a device: by what they hold, by what the function itself
    does with them, or by what a function of the file that is called does with its parameter."""
    callee = called_here(module, call)
    if callee is None:
        passed = [each.value for each in call.keywords if each.arg == "device"]
    else:
        names = (each for each in ast.walk(callee) if isinstance(each, ast.Name))
        used = {each.id for each in names if is_used_as_device(module, each)}
        passed = [value for name, value in matched(callee, call) if name in used]
    yield from (value for value in passed if isinstance(value, ast.Name))
    for each in call.args:
        if isinstance(each, ast.Name) and _is_device(module, each):
            yield each


def _is_device(module: Module, name: ast.Name) -> bool:
    value = module.value_of(name)
    known = bool(value.kinds) and value.is_only(Kind.DEVICE, Kind.DEVICE_STRING)
    return known or is_used_as_device(module, name)
