"""Exchanges with other processes that go on after the call, and who has the handle to wait."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.collectives import GROUP_AT
from tensortrail.rules.shared.functions import called_here, own_returns, parameters
from tensortrail.rules.shared.objects import (
    called,
    is_self,
    is_true,
    receiver,
    within,
)
from tensortrail.rules.view import FunctionNode, Module

_DIST = "torch.distributed"
_READ_ONLY = frozenset({"barrier", "monitored_barrier", "gather", "reduce", "all_gather_object"})
"""They fill no tensor of this process at their first place."""
KEEPS = frozenset({"append", "add", "put"})


class Begun(NamedTuple):
    call: ast.Call
    """What gives the handle."""
    filled: ast.expr
    """The tensor, or list of tensors, that is written while the program goes on."""


def begun(module: Module) -> Iterator[Begun]:
    for name in GROUP_AT:
        for call in module.calls(f"{_DIST}.{name}"):
            if _fills_later(module, call):
                yield from _filling(call)
    for call in module.calls(f"{_DIST}.irecv"):
        yield from _filling(call)
    for call in module.nodes(ast.Call):
        helper = called_here(module, call)
        filled = module.once(_filled_by, helper) if helper is not None else None
        given = module.argument(call, *filled) if filled is not None else None
        if given is not None:
            yield Begun(call, given)


def _fills_later(module: Module, call: ast.Call) -> bool:
    """A collective that returns before its first argument is filled."""
    package, _, name = module.qualified(call.func).rpartition(".")
    if not package.startswith(_DIST) or name not in GROUP_AT or name in _READ_ONLY:
        return False
    return is_true(module.argument(call, GROUP_AT[name] + 1, "async_op"))


def _filling(call: ast.Call) -> Iterator[Begun]:
    first = call.args[0] if call.args else next((each.value for each in call.keywords), None)
    if first is not None:
        yield Begun(call, first)


def _filled_by(module: Module, function: FunctionNode) -> tuple[int, str] | None:
    """The parameter that a function of the file fills, of which it returns the handle."""
    names = [each.arg for each in parameters(function)]
    for returned in own_returns(module, function):
        made = returned.value
        if not isinstance(made, ast.Call) or not made.args or not _fills_later(module, made):
            continue
        filled = made.args[0]
        if isinstance(filled, ast.Name) and filled.id in names:
            return names.index(filled.id), filled.id
    return None


def is_begun(module: Module, call: ast.Call) -> bool:
    return call in module.once(_calls_begun, module.top)


def _calls_begun(module: Module, _: ast.AST) -> set[ast.Call]:
    return {each.call for each in begun(module)}


def handle_uses(module: Module, started: Begun) -> list[ast.expr] | None:
    """What is done with the handle after the call: nothing, or each use of the variable or list
    that has it; None where somebody else may have it."""
    above = module.parent(started.call)
    if isinstance(above, ast.Expr):
        return []
    if isinstance(above, ast.ListComp) and above.elt is started.call:
        above = module.parent(above)
    target = above.targets[0] if isinstance(above, ast.Assign) else _list_given(module, above)
    if isinstance(target, ast.Name):
        return _uses(module, target, started.call)
    if isinstance(target, ast.Attribute) and is_self(target.value):
        reads: list[ast.expr] = [
            each for each in module.members(target.attr) if _is_read(module, each, started)
        ]
        return reads or None  # another file may read it
    return None


def _list_given(module: Module, above: ast.AST | None) -> ast.expr | None:
    """`handles` of `handles.append(dist.all_reduce(x, async_op=True))`."""
    owner = receiver(above) if isinstance(above, ast.Call) else None
    is_kept = isinstance(above, ast.Call) and called(above) in KEEPS
    made = module.value_of(owner).origins if isinstance(owner, ast.Name) else ()
    is_own = bool(made) and all(isinstance(each, ast.List) for each in made)
    return owner if is_kept and is_own else None


def _uses(module: Module, target: ast.Name, call: ast.Call) -> list[ast.expr] | None:
    """Of the variable, and of the list that it is put into."""
    found: list[ast.expr] = []
    for use in module.uses(target.id, module.function_of(call) or module.top):
        if not isinstance(use.ctx, ast.Load) or within(use, call, module):
            continue
        above, made = module.parent(use), module.value_of(use).origins
        kept = _list_given(module, above) if isinstance(above, ast.Call) else None
        if isinstance(kept, ast.Name):
            within_list = _uses(module, kept, call) if kept.id != target.id else None
            if within_list is None:
                return None
            found += within_list
        elif not made or any(_holds(module, each, call) for each in made):
            found += [] if isinstance(above, ast.Attribute) and above.attr in KEEPS else [use]
    return found


def _holds(module: Module, made: ast.AST, call: ast.Call) -> bool:
    """What the variable was bound to has the handle, or is a list, which may get it."""
    return isinstance(made, (ast.List, ast.ListComp)) or within(call, made, module)


def _is_read(module: Module, member: ast.Attribute, started: Begun) -> bool:
    return isinstance(member.ctx, ast.Load) and not within(member, started.call, module)
