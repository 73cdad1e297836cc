"""Numbers of GPUs, where another path gives a device or its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.named.forms import is_number
from tensortrail.rules.shared.functions import own_returns
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind


def numbers_beside_devices(module: Module) -> Iterator[tuple[ast.expr, str]]:
    """Each number, and what is one: to precede "the number of a device"."""
    for stored in module.nodes(ast.Assign):
        target = stored.targets[0]
        if not isinstance(target, ast.Name) or not is_number(module, stored.value):
            continue
        if any(_is_a_device(module, each) for each in _also_stored(module, stored)):
            yield stored.value, f"`{target.id}` is"
    for returned in module.nodes(ast.Return):
        function, number = module.function_of(returned), returned.value
        if function is None or number is None or not is_number(module, number):
            continue
        if any(_is_a_device(module, each) for each in _also_returned(module, returned)):
            yield number, f"`{function.name}` returns"


def _also_stored(module: Module, stored: ast.Assign) -> Iterator[ast.expr]:
    """Under the same name, in the same function."""
    name = module.text(stored.targets[0])
    for each in module.nodes(ast.Assign, module.function_of(stored)):
        if each is not stored and module.text(each.targets[0]) == name:
            yield each.value


def _also_returned(module: Module, returned: ast.Return) -> Iterator[ast.expr]:
    """By the same function."""
    for each in own_returns(module, module.function_of(returned)):
        if each is not returned and each.value is not None:
            yield each.value


def _is_a_device(module: Module, value: ast.expr) -> bool:
    return module.value_of(value).is_only(Kind.DEVICE, Kind.DEVICE_STRING)
