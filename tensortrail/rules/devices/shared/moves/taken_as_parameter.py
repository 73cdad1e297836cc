"""Places that want a Parameter, and are given what a move made of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.annotations import names_type
from tensortrail.rules.shared.layers import PARAMETER
from tensortrail.rules.view import Module


def wanted_as_parameters(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Calls whose result is taken for a Parameter, and what becomes of one that is none."""
    for taken in module.calls("register_parameter"):
        given = module.argument(taken, 1, "param")
        if given is not None:
            for call in _made_by(module, given):
                yield call, "`register_parameter` refuses it"
    for returned in module.nodes(ast.Return):
        function = module.function_of(returned)
        if function is None or function.returns is None or returned.value is None:
            continue
        if names_type(module, function.returns, PARAMETER):
            for call in _made_by(module, returned.value):
                yield call, f"`{function.name}` is annotated to return a Parameter"


def _made_by(module: Module, node: ast.expr) -> list[ast.Call]:
    """The call itself, or the one that gave the variable its value."""
    made = [node] if isinstance(node, ast.Call) else module.value_of(node).origins
    return [each for each in made if isinstance(each, ast.Call)] if len(made) == 1 else []
