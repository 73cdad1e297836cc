"""Modules that another function is given before they are called, and that it may move."""

from __future__ import annotations

import ast

from tensortrail.rules.places import Meeting
from tensortrail.rules.view import Module


def is_moved_by_another(module: Module, made: ast.AST, meeting: Meeting) -> bool:
    """`quantize(model, device=device)`, `prepare(model)`: a function that is not known, or is known
    to move it, takes the module before it is called."""
    stored = module.parent(made)
    targets = stored.targets if isinstance(stored, ast.Assign) else []
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    here = [each for each in module.later(made, ast.Call) if each.lineno < _line(meeting.node)]
    return any(_takes(each, names) and _may_move(module, each) for each in here)


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _takes(call: ast.Call, names: set[str]) -> bool:
    given = (*call.args, *(each.value for each in call.keywords))
    return any(isinstance(each, ast.Name) and each.id in names for each in given)


def _may_move(module: Module, call: ast.Call) -> bool:
    facts = module.function_facts(call)
    if facts is not None:
        return bool(facts.moves)
    if any("device" in (each.arg or "") for each in call.keywords):
        return True
    name = module.qualified(call.func)
    is_dropped = isinstance(module.parent(call), ast.Expr)
    return is_dropped and "." in name and not name.startswith("torch.")
