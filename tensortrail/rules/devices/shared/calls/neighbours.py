"""Whether a call passes a parameter of the function, or is given the one that goes with it."""

from __future__ import annotations

import ast

from tensortrail.rules.devices.shared.calls.customs import named
from tensortrail.rules.shared.objects import given, last_name

_OF_NUMBERS = frozenset({"zeros", "ones", "empty", "rand", "randn", "linspace", "as_tensor"})
"""Factories that take the dtype of what they stand beside, when they take its device."""


def passes_parameter(call: ast.Call, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in given(call))


def takes_its_neighbour(call: ast.Call, name: str) -> bool:
    """A factory that could be given this, and is given the device."""
    func = call.func
    last = last_name(func)
    takes = name == "generator" or (name == "dtype" and last in _OF_NUMBERS)
    return takes and "device" in named(call)
