"""Draws of random numbers with a generator that the function is given."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.shared.tensor_origin import origin_of
from tensortrail.rules.shared.who_decides import Decides
from tensortrail.rules.view import FunctionNode


def generator_of(call: ast.Call) -> ast.Name | None:
    given = next((each.value for each in call.keywords if each.arg == "generator"), None)
    return given if isinstance(given, ast.Name) else None


def is_given(function: FunctionNode, generator: ast.Name) -> bool:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return generator.id in names


def asks_where_it_is(module: Module, function: FunctionNode, generator: str) -> bool:
    """The function looks where the generator is, or takes another one."""
    for node in module.nodes(ast.Attribute, function):
        if node.attr == "device" and module.text(node.value) == generator:
            return True
    return False


def where_drawn(module: Module, call: ast.Call) -> str:
    device = next((each.value for each in call.keywords if each.arg == "device"), None)
    if device is not None:
        return "" if isinstance(device, ast.Constant) else f"made on `{one_line(module, device)}`"
    above = module.parent(call)
    moved = module.parent(above) if isinstance(above, ast.Attribute) else None
    if isinstance(moved, ast.Call) and isinstance(above, ast.Attribute) and above.attr == "to":
        origin = origin_of(module, moved)
        if origin.decides is Decides.MOVED and origin.node is not None:
            return f"made on the default device, then moved to `{one_line(module, origin.node)}`"
    return ""
