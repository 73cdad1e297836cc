"""What callers give for a parameter that is compared as a device: a `torch.device`, or a text."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.named.device_texts import is_known_device, takes_a_device
from tensortrail.rules.devices.shared.named.device_values import is_device
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.given_values import Given, given_for, is_untold
from tensortrail.rules.shared.never_given import is_always_written
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind


def is_given_a_device(module: Module, node: ast.expr) -> bool:
    """A call of the project gives one, or what is said to be one, for a parameter without a type or
    for an attribute that keeps it."""
    return any(_may_be_one(each.module, each.node) for each in _given(module, node))


def given_texts(module: Module, node: ast.expr) -> Iterator[Given]:
    """The texts that calls of the project give there, and the one that is the default."""
    for each in _given(module, node):
        if each.module.kind_of(each.node) is Kind.DEVICE_STRING:
            yield each


def given_devices(module: Module, node: ast.expr) -> Iterator[Given]:
    """What is surely a device of those."""
    for each in _given(module, node):
        if is_known_device(each.module, each.node):
            yield each


def _given(module: Module, node: ast.expr) -> Iterator[Given]:
    """Nothing if the file says what the value is. Calls of other files are read of what has the
    name of a device: not to be slow."""
    if is_untold(module, node):
        yield from given_for(module, node, far=module.value_of(node).may_be(Kind.DEVICE))


def is_given_text(module: Module, node: ast.expr) -> bool:
    """A parameter for which every call of the project writes out a text, whatever its annotation
    says."""
    function = module.function_of(node)
    if function is None or not isinstance(node, ast.Name):
        return False
    own = node.id in names_of_parameters(function) and not module.value_of(node).origins
    return own and is_always_written(module, function, node.id)


def _may_be_one(module: Module, given: ast.expr) -> bool:
    return is_device(module, given) or takes_a_device(module, given)
