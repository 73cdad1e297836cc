"""The one layer of a function that is given no device, where all others are given the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.calls.accepted import is_weighted_layer
from tensortrail.rules.devices.shared.calls.alike import device_of, may_be_twins
from tensortrail.rules.devices.shared.calls.customs import grouped, named
from tensortrail.rules.shared.objects import is_false, keyword
from tensortrail.rules.view import Module

_ENOUGH = 2
"""Layers that are given one."""


def left_layers(module: Module) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Layers of torch that have weights, each with one that is given the device."""
    layers = [each for each in module.nodes(ast.Call) if _has_weights(module, each)]
    for calls in grouped(layers, module.function_of).values():
        left = [each for each in calls if named(each).isdisjoint(("device", None))]
        given = [each for each in calls if device_of(each) is not None]
        said = {module.text(each) for each in map(device_of, given) if each is not None}
        if len(left) != 1 or len(left) + len(given) != len(calls):
            continue
        twins = (each for each in given if may_be_twins(module, left[0], each))
        if len(given) >= _ENOUGH and len(said) == 1 and (twin := next(twins, None)) is not None:
            yield left[0], twin


def _has_weights(module: Module, call: ast.Call) -> bool:
    """Unlike `nn.LayerNorm(n, elementwise_affine=False)`."""
    plain = any(is_false(keyword(call, name)) for name in ("affine", "elementwise_affine"))
    return not plain and is_weighted_layer(module, call)
