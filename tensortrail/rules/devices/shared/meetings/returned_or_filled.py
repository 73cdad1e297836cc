"""What a function does with a tensor that it has made: it returns it, or writes into it."""

from __future__ import annotations

import ast

from tensortrail.rules.places import FunctionPlaces, Held, What, Where
from tensortrail.rules.view import FunctionNode, Module


def is_returned(
    module: Module, function: FunctionNode, places: FunctionPlaces, made: ast.Call
) -> bool:
    """A `return` gives it back, or a tuple that it is a member of."""
    for statement in module.nodes(ast.Return, function):
        value = statement.value
        members = value.elts if isinstance(value, ast.Tuple) else [value]
        held = [places.seen.get(each) for each in members if each is not None]
        if any(each is not None and each.only and each.only.by is made for each in held):
            return module.function_of(statement) is function
    return False


def is_filled(module: Module, function: FunctionNode, made: ast.Call) -> bool:
    """`out[i] = value`: something is written into it that is no number, and not made here."""
    seen = module.places(function).seen
    for statement in module.nodes(ast.Assign, function):
        target = statement.targets[0]
        if not isinstance(target, ast.Subscript):
            continue
        base, value = seen.get(target.value), seen.get(statement.value)
        is_it = base is not None and base.only is not None and base.only.by is made
        if is_it and value is not None and value.what is not What.NUMBER and not _is_fresh(value):
            return True
    return False


def _is_fresh(held: Held) -> bool:
    return bool(held.places) and all(each.where is Where.DEFAULT for each in held.places)
