"""The last move of what a loop calls, before the loop."""

from __future__ import annotations

import ast
from typing import NamedTuple

from tensortrail.rules.devices.shared.batches.loaders_of_file import is_global
from tensortrail.rules.devices.shared.named.devices_named import may_be_device
from tensortrail.rules.shared.moves import TO_DEVICE, moves_to_cpu
from tensortrail.rules.shared.objects import called, given, is_before, receiver
from tensortrail.rules.view import Module


class Moved(NamedTuple):
    name: str
    device: str
    call: ast.Call


def moved_before(module: Module, loop: ast.For, call: ast.Call) -> Moved | None:
    """The last move of what is called, in the same function, if it is to no CPU."""
    assert isinstance(call.func, ast.Name)
    name, function = call.func.id, module.function_of(loop)
    found: ast.Call | None = None
    everywhere = is_global(module, call.func)
    for move in module.calls(*TO_DEVICE, "cpu", inside=None if everywhere else function):
        own = module.function_of(move) is function
        if not own and not (everywhere and module.function_of(move) is None):
            continue
        if own and not is_before(move, loop):
            continue
        owner, statement = receiver(move), module.statement_of(move)
        if (
            isinstance(statement, ast.Assign)
            and statement.value is move
            and module.text(statement.targets[0]) == name
        ) or (owner is not None and module.text(owner) == name and isinstance(statement, ast.Expr)):
            found = move if found is None or is_before(found, move) else found
    if found is None or called(found) == "cpu" or moves_to_cpu(module, found):
        return None
    said = [*given(found)]
    if called(found) == "to" and not (said and may_be_device(module, said[0])):
        return None
    return Moved(name, module.text(said[0]) if said else called(found), found)
