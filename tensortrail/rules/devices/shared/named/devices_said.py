"""Where a function says a device: in calls, as a parameter, by reading that of an object."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.shared.annotations import DEVICE, names_type
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.objects import called, keyword
from tensortrail.rules.view import FunctionNode, Module

OF_ANOTHER_USE = ("rand", "noise", "offload", "storage", "cache", "save", "output")
"""How the name of a device begins that is for something else than the work of the function."""


def device_parameter(module: Module, function: FunctionNode | None) -> ast.arg | None:
    """A parameter of the function, or of one around it, that is a device: by its annotation, or
    because the function hands it on as one."""
    while function is not None:
        found = module.once(_device_parameter, function)
        if found is not None:
            return found
        function = module.function_of(function)
    return None


def _device_parameter(module: Module, function: FunctionNode) -> ast.arg | None:
    given = function.args
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if each.arg.startswith(OF_ANOTHER_USE):
            continue
        if names_type(module, each.annotation, DEVICE) or (
            _is_handed_on(module, function, each.arg)
        ):
            return each
    return None


def _is_handed_on(module: Module, function: FunctionNode, name: str) -> bool:
    """As a device: under that keyword if its own name does not say so, as `x.to(other)` may name a
    tensor."""
    return any(
        isinstance(said, ast.Name)
        and said.id == name
        and ("device" in name or keyword(call, "device") is said)
        for call, said in devices_said(module, function)
    )


def devices_said(module: Module, inside: ast.AST) -> Sequence[tuple[ast.Call, ast.expr]]:
    """Calls that are given a device, with it: `x.to(d)`, `torch.zeros(3, device=d)`, and
    `to_device(x, d)`, whatever function of that name."""
    return module.once(_devices_said, inside)


def _devices_said(module: Module, inside: ast.AST) -> list[tuple[ast.Call, ast.expr]]:
    calls = module.nodes(ast.Call, inside)
    said = ((call, said_device(module, call) or _of_helper(call)) for call in calls)
    return [(call, each) for call, each in said if each is not None]


def _of_helper(call: ast.Call) -> ast.expr | None:
    name = called(call)
    return call.args[1] if name.endswith("to_device") and len(call.args) > 1 else None


def device_read(module: Module, inside: ast.AST) -> Iterator[ast.Attribute]:
    """`x.device` where `x` is an object of this program, not the torch module."""
    for node in module.nodes(ast.Attribute, inside):
        read = node.attr == "device" and isinstance(node.ctx, ast.Load)
        if read and not is_of_library(module, node):
            yield node


def is_of_library(module: Module, node: ast.Attribute) -> bool:
    return module.qualified(node).startswith(("torch.", "jax.", "cupy."))


def is_in_a_file_that_asks_tensors(module: Module, node: ast.AST) -> bool:
    """Some code of the file works where its tensors are: all of it is meant to."""
    *_, file = module.ancestors(node)
    return any(True for _ in device_read(module, file))
