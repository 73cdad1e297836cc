"""New outputs or inputs that a hook computes, and does not return."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.functions import is_declared_outside, own_returns
from tensortrail.rules.shared.hooks import BEFORE, FORWARD, Hook, hooks
from tensortrail.rules.shared.moves import CASTS, MOVES
from tensortrail.rules.shared.objects import (
    called,
    is_before,
    is_none,
    loop_around,
    names_in,
    receiver,
    within,
)
from tensortrail.rules.view import FunctionNode, Module

_PURE = MOVES | CASTS | frozenset("float type add sub mul div clamp detach clone".split())
"""Methods of a tensor that give another one and do nothing beside."""
_MAKES_ONE = ("tuple", "list", "dict")


class Lost(NamedTuple):
    hook: Hook
    at: ast.stmt
    """Where the new value is made."""


def lost_in_hooks(module: Module) -> Iterator[Lost]:
    for hook in hooks(module, FORWARD, BEFORE):
        function = hook.function
        if isinstance(function, ast.Lambda) or _gives_something(module, function):
            continue
        at = _last_lost(module, function, hook.given)
        if at is not None:
            yield Lost(hook, at)


def _gives_something(module: Module, function: FunctionNode) -> bool:
    own = own_returns(module, function)
    yields = [*module.nodes(ast.Yield, function), *module.nodes(ast.Raise, function)]
    return bool(yields) or any(e.value is not None and not is_none(e.value) for e in own)


def _last_lost(module: Module, function: FunctionNode, given: tuple[str, ...]) -> ast.stmt | None:
    """The last statement that makes something new of what the hook was given, and drops it."""
    known: set[str] = set(given)
    found: ast.stmt | None = None
    for each in module.nodes(ast.stmt, function):
        if isinstance(each, ast.Expr) and _is_new(each.value, known):
            found = each
        if not isinstance(each, ast.Assign) or not names_in(each.value) & known:
            continue
        names = {name for target in each.targets for name in _bound(target)}
        lost = names and not any(_is_read(module, function, each, name) for name in names)
        if lost and _is_new(each.value, known):
            found = each
        known |= names
    return found


def _bound(target: ast.expr) -> Iterator[str]:
    """The names that an assignment binds; none if it stores elsewhere too."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)) and all(
        isinstance(each, ast.Name) for each in target.elts
    ):
        yield from (each.id for each in target.elts if isinstance(each, ast.Name))


def _is_new(value: ast.expr, known: set[str]) -> bool:
    """`out * 2`, `out.to(d)`, `tuple(x.to(d) for x in args)`: another object made of what is known,
    and nothing is done beside."""
    if not names_in(value) & known:
        return False
    if isinstance(value, ast.BinOp):
        return True
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return _is_pure(value.elt)
    if isinstance(value, ast.DictComp):
        return _is_pure(value.value)
    if not isinstance(value, ast.Call):
        return False
    if called(value) in _MAKES_ONE and len(value.args) == 1:
        return _is_new(value.args[0], known)
    return _is_pure(value) and bool(names_in(value.func) & known)


def _is_pure(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and receiver(value) is not None and called(value) in _PURE


def _is_read(module: Module, function: FunctionNode, at: ast.stmt, name: str) -> bool:
    """Afterwards, in the next round of a loop around it, or by others."""
    if is_declared_outside(module, function, name):
        return True
    loop = loop_around(module, at)
    start: ast.stmt = loop if loop is not None and within(loop, function, module) else at
    return any(
        isinstance(use.ctx, ast.Load) and is_before(start, use) and not within(use, at, module)
        for use in module.uses(name, function)
    )
