"""Which device a function has at hand, and where it says one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.tensor_origin import is_dtype
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind

_MOVES = frozenset({"to", "to_empty"})


def device_parameter(module: Module, function: FunctionNode | None) -> ast.arg | None:
    """A parameter of the function, or of one around it, that is a device: by its annotation, or
    because the function hands it on as one."""
    while function is not None:
        given = function.args
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            said = module.text(each.annotation) if each.annotation is not None else ""
            if "torch.device" in said or (
                "device" in each.arg and _is_handed_on(module, function, each.arg)
            ):
                return each
        function = module.function_of(function)
    return None


def _is_handed_on(module: Module, function: FunctionNode, name: str) -> bool:
    return any(
        isinstance(said, ast.Name) and said.id == name for _, said in devices_said(module, function)
    )


def devices_said(module: Module, inside: ast.AST) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls that are given a device, with it: `x.to(d)`, `torch.zeros(3, device=d)`."""
    for call in module.nodes(ast.Call, inside):
        said = said_device(module, call)
        if said is not None:
            yield call, said


def said_device(module: Module, call: ast.Call) -> ast.expr | None:
    for each in call.keywords:
        if each.arg == "device":
            return each.value
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in _MOVES and call.args and not is_dtype(module, call.args[0]):
        return call.args[0]
    return None


def is_cuda_literal(module: Module, node: ast.expr) -> bool:
    """`"cuda"`, `"cuda:0"` or `torch.device` of one."""
    if isinstance(node, ast.Call) and module.qualified(node.func) == "torch.device" and node.args:
        node = node.args[0]
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.partition(":")[0] == "cuda"
    )


def device_read(module: Module, inside: ast.AST) -> Iterator[ast.Attribute]:
    """`x.device` where `x` is an object of this program, not the torch module."""
    for node in module.nodes(ast.Attribute, inside):
        if (node.attr == "device" and isinstance(node.ctx, ast.Load)) and (
            not module.qualified(node).startswith(("torch.", "jax.", "cupy."))
        ):
            yield node


def is_string(module: Module, node: ast.expr) -> bool:
    return module.value_of(node).is_only(Kind.OTHER)
