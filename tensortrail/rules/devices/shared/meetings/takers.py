"""Calls of a function that would take an argument which it drops, and need it."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.calls.accepted import accepting, is_maker
from tensortrail.rules.devices.shared.calls.called_in_place import (
    is_called_early_or_by_others,
    stands_in_for_others,
)
from tensortrail.rules.devices.shared.calls.customs import named
from tensortrail.rules.devices.shared.calls.explained import is_explained, is_followed_by
from tensortrail.rules.devices.shared.meetings.indexing import is_read_out
from tensortrail.rules.shared.moves import MOVES, TO_DTYPE
from tensortrail.rules.shared.never_given import is_never_given
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.placeholders import is_placeholder
from tensortrail.rules.view import FunctionNode

_OF_VALUES = frozenset({"tensor", "as_tensor"})
_OF_NUMBERS = frozenset({"zeros", "ones", "empty", "full", "rand", "randn", "linspace"})
"""Factories that make indices and counts as seldom as the function that calls them."""


def takers_of(module: Module, function: FunctionNode, name: str, asked_for: bool) -> list[ast.Call]:
    """Calls that would take the argument, and need it."""
    calls = accepting(module, function, name if asked_for else "device")
    if not asked_for:
        calls = (each for each in calls if not is_followed_by(module, each, MOVES))
    elif name == "device":
        calls = (each for each in calls if not is_explained(module, each))
    if name == "device":
        calls = (each for each in calls if not _is_an_index(module, each))
        calls = (each for each in calls if not is_placeholder(module, each))
    if "dtype" in name:
        calls = (each for each in calls if not _is_typed(module, each))
    return list(calls)


def does_no_harm(
    module: Module, function: FunctionNode, call: ast.Call, name: str, asked_for: bool
) -> bool:
    meant = stands_in_for_others if asked_for else is_called_early_or_by_others
    if meant(module, function, name) or is_free(module, call, name):
        return True
    of_device = name == "device"
    return of_device and (is_never_given(module, function, name) or is_read_out(module, call))


def is_free(module: Module, call: ast.Call, name: str) -> bool:
    """A mask of truth values indexes from the CPU too, and a move changes no type."""
    if "dtype" in name:
        return called(call) == "to"
    said = module.argument(call, 1, "fill_value") if called(call) == "full" else None
    typed = (each.value for each in call.keywords if each.arg == "dtype")
    return any(module.qualified(each) == "torch.bool" for each in typed) or (
        isinstance(said, ast.Constant) and isinstance(said.value, bool)
    )


def _is_an_index(module: Module, call: ast.Call) -> bool:
    """`x[torch.arange(n).unsqueeze(-1), best]`: an index may lie on the CPU."""
    node: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.Subscript):
            return up.slice is node
        if not isinstance(up, (ast.Attribute, ast.Tuple)) and getattr(up, "func", None) is not node:
            return False
        node = up
    return False


def _is_typed(module: Module, call: ast.Call) -> bool:
    """It is given a type, or its result is cast."""
    above = module.parent(call)
    cast = isinstance(above, ast.Attribute) and above.attr in TO_DTYPE
    name = module.qualified(call.func).rpartition(".")[2]
    typed = "dtype" in named(call) or name not in _OF_NUMBERS | _OF_VALUES
    return cast or (is_maker(module, call) and typed)
