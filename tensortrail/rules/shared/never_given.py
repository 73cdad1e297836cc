"""Parameters that no caller of the project gives."""

from __future__ import annotations

import ast

from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.project_facts import ProjectCall
from tensortrail.rules.shared.functions import matched
from tensortrail.rules.view import FunctionNode, Module

_DEPTH = 3
"""Functions that hand the parameter on."""


def is_never_given(module: Module, function: FunctionNode, name: str, depth: int = _DEPTH) -> bool:
    """The project calls the function, or makes its class, in this file or another; and no call
    passes the parameter, but what the caller itself is never given."""
    owner = module.parent(function)
    cls = owner if isinstance(owner, ast.ClassDef) else None
    if cls is not None and (function.name != "__init__" or _has_heirs(module, cls.name)):
        return False
    calls = module.calls_of(cls or function)
    at = _position(function, name, 1 if cls else 0)
    giving = [each for each in calls if _may_give(each, name, at)]
    if not calls or any(each.path != module.path for each in giving):
        return False
    if not giving:
        return True
    own = cls is None and depth > 0
    return own and all(_hands_on(module, function, name, each.line, depth - 1) for each in giving)


def is_given_somewhere(module: Module, function: FunctionNode, name: str) -> bool:
    """A call of the project that is known passes the parameter of the function, or of the class
    that it sets up."""
    owner = module.parent(function)
    cls = owner if isinstance(owner, ast.ClassDef) else None
    at = _position(function, name, 1 if cls else 0)
    return any(_may_give(each, name, at) for each in module.calls_of(cls or function))


def is_chosen_somewhere(module: Module, function: FunctionNode, name: str) -> bool:
    """The same, with a value that is not written out there."""
    owner = module.parent(function)
    cls = owner if isinstance(owner, ast.ClassDef) else None
    at = _position(function, name, 1 if cls else 0)
    calls = module.calls_of(cls or function)
    return any(each.is_open or not {name, at}.isdisjoint(each.given) for each in calls)


def is_always_written(module: Module, function: FunctionNode, name: str) -> bool:
    """Every call of the project passes a text or a number for the parameter, and writes it out."""
    owner = module.parent(function)
    cls = owner if isinstance(owner, ast.ClassDef) else None
    if cls is not None and function.name != "__init__":
        return False
    calls = module.calls_of(cls or function)
    said = {name, _position(function, name, 1 if cls else 0)}
    return bool(calls) and all(said & (each.written - each.off) for each in calls)


def _may_give(call: ProjectCall, name: str, at: int | None) -> bool:
    given = call.given | call.written
    return call.is_open or name in given or at in given


def _hands_on(module: Module, function: FunctionNode, name: str, line: int, depth: int) -> bool:
    """The call of that line passes a parameter of its own function, which nobody gives either."""
    found = [each for each in module.calls(function.name) if each.lineno == line]
    if len(found) != 1:
        return False
    caller, passed = module.function_of(found[0]), dict(matched(function, found[0])).get(name)
    if caller is None or not isinstance(passed, ast.Name):
        return False
    left_out = {
        each.arg
        for each, default in with_defaults(caller.args)
        if isinstance(default, ast.Constant) and default.value is None
    }
    return passed.id in left_out and is_never_given(module, caller, passed.id, depth)


def _has_heirs(module: Module, name: str) -> bool:
    """A class below it may pass the parameter on."""
    bases = (base for each in module.nodes(ast.ClassDef) for base in each.bases)
    return any(module.text(each).rpartition(".")[2] == name for each in bases)


def _position(function: FunctionNode, name: str, first: int) -> int | None:
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return names.index(name) - first if name in names else None
