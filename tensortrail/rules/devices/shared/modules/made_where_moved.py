"""A class whose objects are moved, in the same file, to the device that they were given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.shared.functions import matched
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import FunctionNode


def _goes_where_given(module: Module, init: FunctionNode, made: ast.Call, parameter: str) -> bool:
    given = dict(matched(init, made)).get(parameter) or _default(init, parameter)
    moves = list(_moves(module, made))
    return (
        given is not None and bool(moves) and all(_goes_to(module, each, given) for each in moves)
    )


def _default(init: FunctionNode, parameter: str) -> ast.expr | None:
    return next(
        (default for each, default in with_defaults(init.args) if each.arg == parameter), None
    )


def _goes_to(module: Module, move: ast.Call, device: ast.expr) -> bool:
    """`.to(device)`; `.cuda()` for "cuda"."""
    if not move.args:
        return module.value_of(device).constant == called(move)
    return len(move.args) == 1 and module.text(move.args[0]) == module.text(device)


def _moves(module: Module, made: ast.Call) -> Iterator[ast.Call]:
    """`Net(device).to(device)`, or the moves of the name that it is bound to."""
    up = module.parent(made)
    around = module.parent(up) if isinstance(up, ast.Attribute) else None
    if isinstance(up, ast.Attribute) and up.attr in MOVES:
        if isinstance(around, ast.Call):
            yield around
        return
    if not isinstance(up, ast.Assign):
        return
    names = {module.text(each) for each in up.targets}
    for move in module.calls(*MOVES, inside=module.function_of(made)):
        owner = receiver(move)
        if owner is not None and module.text(owner) in names:
            yield move


def is_moved_elsewhere(module: Module, init: FunctionNode, parameter: str) -> bool:
    """An object that the file makes of the class is moved, and not just to what it was given."""
    cls = module.class_of(init)
    made = list(module.calls(cls.name)) if cls is not None else []
    return any(
        any(_moves(module, each)) and not _goes_where_given(module, init, each, parameter)
        for each in made
    )
