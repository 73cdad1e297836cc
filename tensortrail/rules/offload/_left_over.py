"""Moves of what an earlier loop left behind in a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import Module

_LOOPS = (ast.For, ast.AsyncFor)


def left_over(module: Module) -> Iterator[tuple[ast.Call, ast.Name, ast.stmt]]:
    """A statement `x.to(...)` in a loop that never binds `x`: another loop before it does. With
    the name and that loop."""
    for statement in module.nodes(ast.Expr):
        call = statement.value
        if not isinstance(call, ast.Call) or called(call) not in MOVES:
            continue
        owner, loop = receiver(call), _loop_around(module, statement)
        if not isinstance(owner, ast.Name) or loop is None:
            continue
        before = _bound_in(module, owner, loop)
        if before is not None and not _is_used_in(module, owner, loop):
            yield call, owner, before


def _loop_around(module: Module, node: ast.AST) -> ast.stmt | None:
    around = (each for each in module.ancestors(node) if isinstance(each, _LOOPS))
    return next(around, None)


def _bound_in(module: Module, name: ast.Name, loop: ast.stmt) -> ast.stmt | None:
    """The loop that holds every statement binding the name, if it is over before this one."""
    function = module.function_of(loop)
    stores = [
        each
        for each in module.nodes(ast.Name, function)
        if each.id == name.id and isinstance(each.ctx, ast.Store)
    ]
    given = function.args if function is not None else None
    if not stores or (given and any(each.arg == name.id for each in ast.walk(given)
                                    if isinstance(each, ast.arg))):  # fmt: skip
        return None
    outer = {_outermost_loop(module, each) for each in stores}
    before = outer.pop()
    if outer or before is None or _outermost_loop(module, loop) is before:
        return None
    ends = getattr(before, "end_lineno", None) or before.lineno
    return before if ends < loop.lineno and _outermost_loop(module, loop) is None else None


def _outermost_loop(module: Module, node: ast.AST) -> ast.stmt | None:
    found = None
    for each in module.ancestors(node):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(each, _LOOPS):
            found = each
    return found


def _is_used_in(module: Module, name: ast.Name, loop: ast.stmt) -> bool:
    """The loop reads the name for something else too: the old value may be meant."""
    return any(each.id == name.id and each is not name for each in module.nodes(ast.Name, loop))
