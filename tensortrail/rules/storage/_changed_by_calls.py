"""Calls that change a tensor in place and return it, while the caller counts on the old values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.project_facts import Changed
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.objects import given, is_before
from tensortrail.rules.storage._read_after import is_read_after
from tensortrail.rules.view import FunctionNode, Module


class ChangedByCall(NamedTuple):
    call: ast.Call
    given: ast.Name
    """The argument that is changed."""
    is_yielded: bool
    """The function has yielded it; else it reads it afterwards."""
    change: ast.stmt | None
    """Where it is changed, if that is in this file."""


def changed_by_calls(module: Module) -> Iterator[ChangedByCall]:
    """`out = step(x)` where both are read below, and `x = step(x)` after `yield x`."""
    for function in functions(module):
        yielded = _yielded(module, function)
        for assign in module.nodes(ast.Assign, function):
            if isinstance(assign.value, ast.Call) and module.function_of(assign) is function:
                yield from _changed(module, assign, assign.value, yielded)


def _yielded(module: Module, function: FunctionNode) -> dict[str, ast.Yield]:
    """The names that the function yields, each with the first place."""
    found: dict[str, ast.Yield] = {}
    for each in module.nodes(ast.Yield, function):
        parts = each.value.elts if isinstance(each.value, ast.Tuple) else [each.value]
        for part in parts:
            if isinstance(part, ast.Name):
                found.setdefault(part.id, each)
    return found


def _changed(
    module: Module, assign: ast.Assign, call: ast.Call, yielded: dict[str, ast.Yield]
) -> Iterator[ChangedByCall]:
    if not any(isinstance(each, ast.Name) for each in given(call)):
        return
    for argument, changed in module.changed_and_returned(call):
        name = _bound_at(assign.targets[0], changed.place)
        if not isinstance(argument, ast.Name):
            continue
        again = name == argument.id
        if (
            _is_out(yielded, argument, call)
            if again
            else all(is_read_after(module, assign, each) for each in (argument.id, name))
        ):
            yield ChangedByCall(call, argument, again, _at(module, changed))


def _at(module: Module, changed: Changed) -> ast.stmt | None:
    if changed.path != module.path:
        return None
    return next(each for each in module.nodes(ast.stmt) if each.lineno == changed.line)


def _bound_at(target: ast.expr, place: int) -> str:
    """The name that is bound to this part of the result; "" if none is."""
    if place >= 0:
        parts = target.elts if isinstance(target, ast.Tuple) else []
        target = parts[place] if place < len(parts) else target
    return target.id if isinstance(target, ast.Name) else ""


def _is_out(yielded: dict[str, ast.Yield], name: ast.Name, call: ast.Call) -> bool:
    return name.id in yielded and is_before(yielded[name.id], call)
