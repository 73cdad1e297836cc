"""Files of safetensors that go to a device on one path of a function, and to the CPU on another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.patterns import pattern
from tensortrail.rules.shared.conditions import are_exclusive
from tensortrail.rules.shared.moves import is_cpu
from tensortrail.rules.shared.objects import all_given, unpacks
from tensortrail.rules.view import Module

_LOADS = ("safetensors.torch.load", "safetensors.torch.load_file")
_CHOSEN = pattern(r"device|cuda|cpu|gpu|meta|map_location")
_DEVICE = 1
"""The position of `device` in `load_file`; `load` takes none."""


class LeftOnCpu(NamedTuple):
    """A load onto the CPU, beside one that is given a device."""

    call: ast.Call
    beside: ast.Call
    device: ast.expr


def left_on_cpu(module: Module) -> Iterator[LeftOnCpu]:
    calls = [each for each in module.calls(*_LOADS) if not unpacks(each)]
    for call in calls:
        function = module.function_of(call)
        if function is None or module.argument(call, _DEVICE, "device") is not None:
            continue
        if _is_meant(module, call):
            continue
        for other in calls:
            device = _said(module, other)
            if device is None or module.function_of(other) is not function:
                continue
            if _are_alternatives(module, call, other) and not _is_moved(module, call, device):
                yield LeftOnCpu(call, other, device)
                break


def _said(module: Module, call: ast.Call) -> ast.expr | None:
    """The device that it is given, unless that is the CPU."""
    given = module.argument(call, _DEVICE, "device")
    return None if given is None or is_cpu(module, given) else given


def _is_meant(module: Module, call: ast.Call) -> bool:
    """It stands where the other way failed, or where a condition about devices leads."""
    if any(isinstance(each, ast.ExceptHandler) for each in module.ancestors(call)):
        return True
    return any(_CHOSEN.search(each.text) for each in module.guards_of(call))


def _are_alternatives(module: Module, one: ast.Call, other: ast.Call) -> bool:
    """A condition chooses one of them, to be returned or bound to the same name."""
    if not are_exclusive(module, one, other):
        return False
    mine, others = module.statement_of(one), module.statement_of(other)
    if isinstance(mine, ast.Return) and isinstance(others, ast.Return):
        return mine is not others
    if not (isinstance(mine, ast.Assign) and isinstance(others, ast.Assign)):
        return False
    same = module.text(mine.targets[0]) == module.text(others.targets[0])
    return same and mine is not others


def _is_moved(module: Module, call: ast.Call, device: ast.expr) -> bool:
    """The function moves something to the same device after it: `{k: v.to(device) ...}`."""
    said = module.text(device)
    moves = module.calls("to", inside=module.function_of(call))
    return any(said in (module.text(arg) for arg in all_given(each)) for each in moves)
