"""What callers give a function: they may have moved it before, and it may read it nowhere."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.shared.functions import called_here, matched, names_of_parameters
from tensortrail.rules.shared.objects import root_of


def is_of_callers(module: Module, moved: ast.expr) -> bool:
    """A parameter of the function, or a view of it under the same name. Not if the function asks
    where it is, or makes it where callers give none."""
    function = module.function_of(moved)
    if not isinstance(moved, ast.Name) or function is None:
        return False
    if moved.id not in names_of_parameters(function) or _is_asked_where(module, moved):
        return False
    usual = {given.arg: default for given, default in with_defaults(function.args)}.get(moved.id)
    made_of = (root_of(each) for each in module.value_of(moved).origins)
    return not isinstance(usual, ast.Call) and all(
        each is usual or (isinstance(each, ast.Name) and each.id == moved.id) for each in made_of
    )


def _is_asked_where(module: Module, moved: ast.Name) -> bool:
    tests = [module.text(each.test) for each in module.guards_of(moved)]
    return any(f"{moved.id}.{asked}" in test for test in tests for asked in ("device", "is_cuda"))


def is_left_unread(module: Module, use: ast.expr) -> bool:
    """It is given to a function of the file that never reads the parameter."""
    above = module.parent(use)
    call = module.parent(above) if isinstance(above, ast.keyword) else above
    callee = called_here(module, call) if isinstance(call, ast.Call) else None
    if callee is None or not isinstance(call, ast.Call):
        return False
    names = {name for name, given in matched(callee, call) if given is use}
    reads = {each.id for each in module.nodes(ast.Name, callee)}
    return bool(names) and names.isdisjoint(reads)
