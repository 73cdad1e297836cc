"""The tensor whose shape, length or dtype a call takes, and not its device."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.calls.accepted import (
    is_maker,
)
from tensortrail.rules.devices.shared.calls.customs import named
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import called, is_called
from tensortrail.rules.view import FunctionNode

_OF_TENSORS = frozenset({"shape", "dtype", "size"})


def modelled_on(module: Module, function: FunctionNode, call: ast.Call) -> str:
    """The device of the tensor whose shape, length or dtype the call takes."""
    if not is_maker(module, call) and not _most_pass_one(module, call):
        return ""
    measured = _measured(module, function, call) if is_maker(module, call) else ""
    if measured:
        return measured
    given = [*call.args, *(each.value for each in call.keywords)]
    for argument in given:
        for node in (argument, *module.nodes(ast.Attribute, argument)):
            if isinstance(node, ast.Attribute) and _is_of_a_tensor(module, node, call):
                return f"{module.text(node.value)}.device"
    return ""


def _most_pass_one(module: Module, call: ast.Call) -> bool:
    """Most other calls of it in the package are given a device, or of that name in the file."""
    given: list[set[str | int | None]] = [
        {*each.given, *each.written} for each in module.calls_in_project(call)
    ] or [{*named(each)} for each in module.calls(called(call))]
    return sum("device" in each for each in given) * 2 > len(given) - 1


def _is_of_a_tensor(module: Module, node: ast.Attribute, call: ast.Call) -> bool:
    """A shape or dtype; for functions of the project the `size` of an image is none."""
    if node.attr not in _OF_TENSORS or not isinstance(node.value, (ast.Name, ast.Attribute)):
        return False
    if module.qualified(node.value).startswith(("torch", "numpy")):
        return False
    return is_maker(module, call) or node.attr != "size" or is_called(module, node)


def _measured(module: Module, function: FunctionNode, call: ast.Call) -> str:
    """`x.device` of `torch.ones(len(x))`, for an argument that is said to be a tensor."""
    tensors = {
        each.arg
        for each in parameters(function)
        if each.annotation is not None and module.text(each.annotation).endswith("Tensor")
    }
    for each in module.calls("len", inside=call):
        given = each.args[0] if each.args else None
        if isinstance(given, ast.Name) and given.id in tensors:
            return f"{given.id}.device"
    return ""
