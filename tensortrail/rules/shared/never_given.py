"""Parameters that no caller of the project gives."""

from __future__ import annotations

import ast

from tensortrail.rules.view import FunctionNode, Module


def is_never_given(module: Module, function: FunctionNode, name: str) -> bool:
    """The project calls the function, or makes its class, in this file or another; and no call
    passes the parameter."""
    owner = module.parent(function)
    cls = owner if isinstance(owner, ast.ClassDef) else None
    if cls is not None and (function.name != "__init__" or _has_heirs(module, cls.name)):
        return False
    calls = module.calls_of(cls or function)
    at = _position(function, name, 1 if cls else 0)
    said = ((each.is_open, each.given | each.written) for each in calls)
    return bool(calls) and not any(is_open or name in keys or at in keys for is_open, keys in said)


def _has_heirs(module: Module, name: str) -> bool:
    """A class below it may pass the parameter on."""
    bases = (base for each in module.nodes(ast.ClassDef) for base in each.bases)
    return any(module.text(each).rpartition(".")[2] == name for each in bases)


def _position(function: FunctionNode, name: str, first: int) -> int | None:
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return names.index(name) - first if name in names else None
