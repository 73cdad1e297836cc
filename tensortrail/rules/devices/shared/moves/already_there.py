"""Whether a move finds the tensor where it moves it to: one question for all rules about moves."""

from __future__ import annotations

import ast
from enum import Enum

from tensortrail.rules.devices.shared.moves.computed_of import (
    is_computed_there,
    is_made_beside,
    is_made_there,
)
from tensortrail.rules.devices.shared.moves.of_callers import is_of_callers
from tensortrail.rules.devices.shared.written_for.told import names_a_gpu
from tensortrail.rules.devices.shared.written_for.usual_device import is_usually_the_cpu
from tensortrail.rules.places import Where
from tensortrail.rules.shared.moves import ACCELERATORS, named_device, told_of
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module


class There(Enum):
    """What the code says of a tensor and of the device that it is moved to."""

    SAME = "same"
    """It is there in every run: nothing is moved."""
    MAYBE = "maybe"
    """It may be there: by its callers, by what it is computed of, or because all is on the CPU."""
    ELSEWHERE = "elsewhere"
    """Nothing says that it is there."""


def already_there(module: Module, move: ast.Call, moved: ast.expr) -> There:
    """`moved` is the tensor, or the call that made it: a parameter lies where its values do."""
    values = moved.args[0] if isinstance(moved, ast.Call) and moved.args else moved
    if isinstance(moved, ast.Call) and is_made_there(module, moved, move):
        return There.SAME
    if _lies_there(module, values, move):
        return There.SAME
    may_be = (
        is_of_callers(module, values)
        or is_computed_there(module, moved, move)
        or is_made_beside(module, move)
        or _is_all_on_one_device(module, move, values)
    )
    return There.MAYBE if may_be else There.ELSEWHERE


def is_to_a_gpu(module: Module, move: ast.Call) -> bool:
    """The move itself says so: nobody can choose the CPU."""
    said = told_of(move)
    named = said is not None and names_a_gpu(module, named_device(module, said))
    return named or called(move) in ACCELERATORS


def _lies_there(module: Module, values: ast.expr, move: ast.Call) -> bool:
    """Both have one place, which is known and the same."""
    device = told_of(move)
    seen = module.places(module.function_of(move) or module.top).seen
    if device is None or values not in seen or device not in seen:
        return False
    there = seen[device].only
    return there is not None and there.where in _KNOWN and there == seen[values].only


_KNOWN = (Where.OF, Where.DEVICE, Where.LITERAL)


def _is_all_on_one_device(module: Module, move: ast.Call, moved: ast.expr) -> bool:
    """The device is the CPU for all that the project says; or the project makes a GPU the default,
    and the tensor is made on that."""
    device = told_of(move)
    if device is not None and is_usually_the_cpu(module, device):
        return True
    held = module.places(module.function_of(move) or module.top).seen.get(moved)
    by_default = held is not None and any(at.where is Where.DEFAULT for at in held.places)
    return by_default and module.gpu_made_default() is not None
