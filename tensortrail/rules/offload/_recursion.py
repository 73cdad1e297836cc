"""Functions that go through a module's children by calling themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shared.objects import called, resolved_name
from tensortrail.rules.shared.recursion import options_left_out
from tensortrail.rules.view import FunctionNode

_PLACES = re.compile(r"hook|offload|onload|dispatch|align")
_OVER_CHILDREN = re.compile(r"\b(children|named_children)\b")


def dropped_options(module: Module) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
    """Calls of itself that leave out options the function was given and reads."""
    for function in module.nodes(ast.FunctionDef):
        if not _places(module, function):
            continue
        for call in module.nodes(ast.Call, function):
            if called(call) == function.name and _is_for_children(module, call, function):
                left_out = options_left_out(module, call, function)
                if left_out:
                    yield call, left_out


def _places(module: Module, function: FunctionNode) -> bool:
    """By its name, or by what it calls."""
    calls = module.nodes(ast.Call, function)
    names = (function.name, *(resolved_name(module, each) for each in calls))
    return any(map(_PLACES.search, names))


def _is_for_children(module: Module, call: ast.Call, function: FunctionNode) -> bool:
    loops = [up for up in module.ancestors(call) if isinstance(up, ast.For)]
    return module.function_of(call) is function and any(
        _OVER_CHILDREN.search(module.text(loop.iter)) for loop in loops
    )
