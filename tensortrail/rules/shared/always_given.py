"""Parameters that every caller of the project gives."""

from __future__ import annotations

import ast

from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.shared.functions import matched
from tensortrail.rules.view import FunctionNode, Module

_DEPTH = 3
"""Functions that hand the parameter on."""


def is_always_given(module: Module, function: FunctionNode, name: str, depth: int = _DEPTH) -> bool:
    """The project calls the function, and each call passes the parameter. One of this file that
    hands on a parameter which may be left out has to be given that itself."""
    if isinstance(module.parent(function), ast.ClassDef) or depth == 0:
        return False
    calls, at = module.calls_of(function), _position(function, name)
    if not calls or not all({name, at} & (each.given | each.written) for each in calls):
        return False
    return all(
        _has_a_value(module, function, name, call, depth - 1)
        for call in module.calls(function.name)
    )


def _position(function: FunctionNode, name: str) -> int | None:
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return names.index(name) if name in names else None


def _has_a_value(
    module: Module, function: FunctionNode, name: str, call: ast.Call, depth: int
) -> bool:
    passed, caller = dict(matched(function, call)).get(name), module.function_of(call)
    if not isinstance(passed, ast.Name) or caller is None:
        return True
    left_out = {each.arg for each, _ in with_defaults(caller.args)}
    return passed.id not in left_out or is_always_given(module, caller, passed.id, depth)
