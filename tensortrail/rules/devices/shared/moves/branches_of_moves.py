"""The conditions around a move whose result is dropped."""

from __future__ import annotations

import ast

from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.shared.never_given import is_given_somewhere
from tensortrail.rules.view import Module


def is_only_if_tensor(module: Module, call: ast.Call, moved: ast.expr) -> bool:
    """`if torch.is_tensor(up):` of a parameter that is a list of numbers, or None, unless a caller
    gives one, and none of the project does."""
    function = module.function_of(call)
    if function is None or not isinstance(moved, ast.Name):
        return False
    defaults = {each.arg: default for each, default in with_defaults(function.args)}
    usual = defaults.get(moved.id)
    if not isinstance(usual, (ast.List, ast.Tuple, ast.Constant)):
        return False
    if is_given_somewhere(module, function, moved.id):
        return False
    return any(
        guard.holds
        and isinstance(guard.test, ast.Call)
        and module.qualified(guard.test.func) in ("torch.is_tensor", "isinstance")
        and module.text(guard.test.args[0]) == moved.id
        for guard in module.guards_of(call)
    )


def never_runs(module: Module, statement: ast.stmt, moved: ast.expr) -> bool:
    """`if x.device == "cpu": x.to(device)` is never reached (DEV501)."""
    asked = f"{module.text(moved)}.device"
    for guard in module.guards_of(statement):
        match guard.test:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as sign], comparators=[name]):
                equal = guard.holds is isinstance(sign, ast.Eq)
                text = isinstance(name, ast.Constant) and isinstance(name.value, str)
                if equal and text and module.text(left) == asked:
                    return True
    return False
