"""Parameters that no caller of the project gives."""

from __future__ import annotations

import ast

from tensortrail.rules.view import FunctionNode, Module


def is_never_given(module: Module, function: FunctionNode, name: str) -> bool:
    """The project calls the function, or makes its class, this file among others; and no call
    passes the parameter."""
    owner = module.parent(function)
    is_made = isinstance(owner, ast.ClassDef) and function.name == "__init__"
    called = owner.name if isinstance(owner, ast.ClassDef) and is_made else function.name
    if isinstance(owner, ast.ClassDef) and (not is_made or _has_heirs(module, called)):
        return False
    here = next(module.calls(called), None)
    calls = module.calls_in_project(here) if here is not None else ()
    at = _position(function, name, 1 if is_made else 0)
    said = ((each.is_open, each.given | each.written) for each in calls)
    return bool(calls) and not any(is_open or name in keys or at in keys for is_open, keys in said)


def _has_heirs(module: Module, name: str) -> bool:
    """A class below it may pass the parameter on."""
    bases = (base for each in module.nodes(ast.ClassDef) for base in each.bases)
    return any(module.text(each).rpartition(".")[2] == name for each in bases)


def _position(function: FunctionNode, name: str, first: int) -> int | None:
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return names.index(name) - first if name in names else None
