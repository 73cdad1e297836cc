"""Loads with `assign=True` that put the weights of a file in the place of moved ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.moves import GIVES_ITSELF, MAY_PLACE, TO_DEVICE, is_cpu, moves_to_cpu
from tensortrail.rules.shared.objects import called, given, is_true, keyword, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind

_TORCH, _SAFE = "torch.load", "safetensors.torch.load_file"


class Assigned(NamedTuple):
    load: ast.Call
    model: str
    moved: ast.Call
    read: ast.Call
    """What gives the weights of the file, on the CPU."""


def assigned_after_move(module: Module) -> Iterator[Assigned]:
    for load in module.calls("load_state_dict"):
        owner, state = receiver(load), module.argument(load, 0, "state_dict")
        if owner is None or state is None or not is_true(keyword(load, "assign")):
            continue
        model, read = module.text(owner), behind(module, state)
        if not isinstance(read, ast.Call) or not _gives_cpu(module, read):
            continue
        moved = _moved_before(module, load, model)
        if moved is not None and not _may_be_moved_after(module, load, model):
            yield Assigned(load, model, moved, read)


def _gives_cpu(module: Module, read: ast.Call) -> bool:
    name = module.qualified(read.func)
    if name == _TORCH:
        where = module.argument(read, 1, "map_location")
        return where is not None and is_cpu(module, where)
    where = module.argument(read, 1, "device")
    return name == _SAFE and (where is None or is_cpu(module, where))


def _moved_before(module: Module, load: ast.Call, model: str) -> ast.Call | None:
    """The last move of the model, or of what was bound to its name, if that is to a device."""
    for call in module.earlier(load, ast.Call):
        owner, bound = receiver(call), module.parent(call)
        is_bound = isinstance(bound, ast.Assign) and model in map(module.text, bound.targets)
        of_model = owner is not None and module.text(owner) == model
        if not is_bound and not of_model:
            continue
        move = _move_in(module, call)
        if move is not None:
            return move
        if is_bound or called(call) in MAY_PLACE or called(call) == "cpu":
            return None
    return None


def _move_in(module: Module, call: ast.Call) -> ast.Call | None:
    """`Net().to(device).eval()`: the move in it that is not to the CPU."""
    each: ast.expr | None = call
    while isinstance(each, ast.Call) and called(each) in GIVES_ITSELF:
        if called(each) in TO_DEVICE and not moves_to_cpu(module, each):
            said = said_device(module, each)
            told = called(each) != "to" or (said is not None and not _is_dtype(module, said))
            return each if told else None
        each = receiver(each)
    return None


def _is_dtype(module: Module, said: ast.expr) -> bool:
    """`torch.bfloat16`, also by a name."""
    named = module.qualified(behind(module, said))
    return named.startswith("torch.") and module.value_of(said).kind is not Kind.DEVICE


def _may_be_moved_after(module: Module, load: ast.Call, model: str) -> bool:
    """It is moved again, or handed to somebody who may do so."""
    for call in module.later(load, ast.Call):
        owner = receiver(call)
        if called(call) in MAY_PLACE and owner is not None and module.text(owner) == model:
            return True
        if any(module.text(each) == model for each in given(call)):
            return True
    return False
