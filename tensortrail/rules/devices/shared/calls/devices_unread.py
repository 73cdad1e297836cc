"""Parameters and variables of a function that are a device by their name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import FunctionNode

_OF_A_DEFAULT = 2
"""Statements of a method that does nothing, with its docstring."""


def devices_named(module: Module, function: FunctionNode) -> Iterator[tuple[ast.AST, str]]:
    """Parameters and variables that are a device by their name, each once."""
    found: dict[str, ast.AST] = {each.arg: each for each in parameters(function)}
    for each in module.nodes(ast.Name, function):
        if isinstance(each.ctx, ast.Store) and isinstance(module.parent(each), ast.Assign):
            found.setdefault(each.id, each)
    for name, node in found.items():
        if is_a_device(name):
            yield node, name


def is_a_device(name: str) -> bool:
    return name == "device" or name.endswith("_device")


def is_empty(function: FunctionNode) -> bool:
    """It only raises, passes or gives back a name: a default that others override."""
    *_, last = function.body
    if isinstance(last, (ast.For, ast.With, ast.If)) or _hands_on_to_its_base(last):
        return False
    return len(function.body) <= _OF_A_DEFAULT


def _hands_on_to_its_base(statement: ast.stmt) -> bool:
    """`super().__init__(path, dtype=dtype)`, with some of what it is given."""
    call = statement.value if isinstance(statement, (ast.Expr, ast.Return)) else None
    func = call.func if isinstance(call, ast.Call) else None
    owner = func.value if isinstance(func, ast.Attribute) else None
    return isinstance(call, ast.Call) and isinstance(owner, ast.Call) and called(owner) == "super"
