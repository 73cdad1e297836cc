"""Models that are moved as what `DistributedDataParallel` gave, and were on the CPU when it did."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.given_devices import said_device, says_device, under_device
from tensortrail.rules.shared.moves import MAY_PLACE, TO_DEVICE, moves_to_cpu
from tensortrail.rules.shared.objects import called, calls_in, given, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.parallel_wrappers import AVERAGING
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind


class MovedAfterWrap(NamedTuple):
    wrap: ast.Call
    inner: ast.expr
    made: ast.Call
    move: ast.Call


def moved_after_wrap(module: Module) -> Iterator[MovedAfterWrap]:
    for wrap in module.calls(*AVERAGING):
        inner = module.argument(wrap, 0, "module")
        made = _made_on_cpu(module, wrap, inner) if inner is not None else None
        move = _move_of(module, wrap) if made is not None else None
        if inner is not None and made is not None and move is not None:
            yield MovedAfterWrap(wrap, inner, made, move)


def _made_on_cpu(module: Module, wrap: ast.Call, inner: ast.expr) -> ast.Call | None:
    """The one call that made the model, if nothing has put it on another device since."""
    made = behind(module, inner)
    if not isinstance(made, ast.Call):
        return None
    of_torch = module.qualified(made.func).startswith("torch.nn.")
    if not of_torch and module.kind_of(made) is not Kind.MODULE:
        return None
    if any(called(each) in MAY_PLACE for each in calls_in(module, made)):
        return None
    if says_device(module, made) or under_device(module, made):
        return None
    handed = [] if made is inner else module.earlier(wrap, ast.Call)
    return None if any(_may_place(module, each, module.text(inner)) for each in handed) else made


def _may_place(module: Module, call: ast.Call, name: str) -> bool:
    """It moves the model, or is given it."""
    owner = receiver(call)
    asked = owner is not None and module.text(owner) == name and called(call) in MAY_PLACE
    return asked or any(module.text(each) == name for each in given(call))


def _move_of(module: Module, wrap: ast.Call) -> ast.Call | None:
    """`DDP(net).to(device)`, or `model.to(device)` of the wrapper later in the function."""
    above = module.parent(wrap)
    chained = module.parent(above) if isinstance(above, ast.Attribute) else None
    if isinstance(chained, ast.Call) and _is_move(module, chained):
        return chained
    if not isinstance(above, ast.Assign):
        return None
    name = module.text(above.targets[0])
    for call in module.later(above, ast.Call):
        owner = receiver(call)
        if owner is not None and module.text(owner) == name and _is_move(module, call):
            return call
    return None


def _is_move(module: Module, call: ast.Call) -> bool:
    told = called(call) != "to" or said_device(module, call) is not None
    return called(call) in TO_DEVICE and told and not moves_to_cpu(module, call)
