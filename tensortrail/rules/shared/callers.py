"""The calls of a function of the file, in it and in the other files of its project."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import is_self
from tensortrail.rules.view import FunctionNode, Module


def is_dropped_by_all(module: Module, function: FunctionNode | None) -> bool:
    """The project calls the function, and no call does anything with the result."""
    calls = list(_calls(module, function)) if function is not None else []
    return bool(calls) and all(isinstance(file.parent(call), ast.Expr) for file, call in calls)


def is_never_called(module: Module, function: FunctionNode) -> bool:
    """Nothing in this file has the name of the function, and the project has no call of it."""
    at_top = isinstance(module.parent(function), ast.Module)
    return at_top and not (module.uses(function.name) or module.calls_of(function))


def _calls(module: Module, function: FunctionNode) -> Iterator[tuple[Module, ast.Call]]:
    for call in module.calls(function.name):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is None or is_self(owner):
            yield module, call
    given = [each.arg for each in parameters(function) if each.arg not in ("self", "cls")]
    for caller in module.passed_elsewhere(function, given[0]) if given else ():
        yield caller.module, caller.call
