"""A variable that holds what an unknown function made of tensors whose device callers choose."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.meetings.following import follows
from tensortrail.rules.places import UNKNOWN_HELD, Held, Place, What, Where
from tensortrail.rules.shared.objects import given
from tensortrail.rules.view import FunctionNode, Module


def place_of_computed(module: Module, function: FunctionNode, held: Held) -> Place | None:
    """The place of the variable. What a function gives for tensors of one device lies there too,
    unless it says otherwise."""
    there = held.only if held.what is What.TENSOR else None
    if there is None or there.where is not Where.LOCAL or function is module.top:
        return None
    made = list(_made(module, function, there.subject))
    along = bool(made) and all(_is_made_there(module, function, each) for each in made)
    return there if along else None


def _is_made_there(module: Module, function: FunctionNode, value: ast.expr) -> bool:
    seen = module.places(function).seen
    made = [each for each in ast.walk(value) if isinstance(each, ast.Call)]
    unknown = [each for each in made if seen.get(each, UNKNOWN_HELD).what is not What.NUMBER]
    held = (seen[each] for call in unknown for each in given(call) if each in seen)
    tensors = [each for each in held if each.what is What.TENSOR]
    return bool(tensors) and all(follows(module, function, each) for each in tensors)


def _made(module: Module, function: FunctionNode, name: str) -> Iterator[ast.expr]:
    """What the function stores under the name, but for what it makes of that again."""
    for stored in module.uses(name, function):
        statement = module.statement_of(stored) if isinstance(stored.ctx, ast.Store) else None
        value = statement.value if isinstance(statement, ast.Assign) else None
        if value is not None and not any(module.uses(name, value)):
            yield value
