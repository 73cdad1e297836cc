"""Two calls of a function that are the same but for a device that only one of them is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.calls.alike import (
    are_twins,
    callee_of,
    device_of,
    may_be_twins,
)
from tensortrail.rules.devices.shared.calls.customs import grouped
from tensortrail.rules.shared.objects import called, last_name
from tensortrail.rules.view import FunctionNode, Module

_OF_VALUES = frozenset(
    {
        "tensor",
        "Tensor",
        "to",
        "dict",
        "partial",
        "nested_tensor",
        "as_nested_tensor",
    }
)
"""What these are given may be meant for the CPU; the values say it, not the call."""
_FOLLOWS = pattern(r".*_like|new_\w+|.*open")
_ENOUGH = 2
"""Calls of one callee that make a custom."""


def unlike_their_twins(module: Module) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Calls without a device, with the call of the same function that is given one."""
    given = [each for each in module.nodes(ast.Call) if device_of(each) is not None]
    for function in dict.fromkeys(map(module.function_of, given)):
        if function is None:
            continue
        calls = (each for each in module.nodes(ast.Call, function) if _may_differ(module, each))
        own = [each for each in calls if module.function_of(each) is function]
        for alike in grouped(own, lambda each: callee_of(module, each)).values():
            yield from _pairs(module, function, alike)


def _may_differ(module: Module, call: ast.Call) -> bool:
    func = call.func
    name = last_name(func)
    if not name or name in _OF_VALUES or _FOLLOWS.fullmatch(name) or _is_spread(call):
        return False
    if any(each.arg == "pin_memory" for each in call.keywords):
        return False
    first = call.args[0] if call.args else None
    one_at_most = isinstance(first, ast.Constant) and first.value in (0, 1)
    return not one_at_most and not any(
        isinstance(each, ast.ExceptHandler) for each in module.ancestors(call)
    )


def _is_spread(call: ast.Call) -> bool:
    """`*args`; what `**options` hold is seen by the twin, which is given them and a device."""
    return any(isinstance(each, ast.Starred) for each in call.args)


def _pairs(
    module: Module, function: FunctionNode, alike: Sequence[ast.Call]
) -> Iterator[tuple[ast.Call, ast.Call]]:
    given = [each for each in alike if device_of(each) is not None]
    without = [each for each in alike if all(key.arg != "device" for key in each.keywords)]
    if not 0 < len(without) <= len(given):
        return
    alone = len(without) == 1 and _is_custom(module, without[0], given)
    for call in without:
        near = sorted(given, key=lambda each: abs(each.lineno - call.lineno))
        if alone:
            near = [each for each in near if may_be_twins(module, call, each)]
        else:
            near = [each for each in near if are_twins(module, function, call, each)]
        twin = next(iter(near), None)
        if twin is not None:
            yield call, twin


def _is_custom(module: Module, call: ast.Call, given: Sequence[ast.Call]) -> bool:
    """All others of one callee, two or more, are given the same device: `schedule.start(...)`."""
    devices = [device_of(each) for each in given]
    said = {module.text(each) for each in devices if each is not None}
    if called(call)[:1].isupper() and not _differ_in_places_only(call, given):
        return False
    if module.qualified(call.func).startswith("torch."):
        return False
    if isinstance(call.func, ast.Name) and module.value_of(call.func).origins:
        return False  # it stands for one function here, and for another one there
    return len(given) >= _ENOUGH and len(said) == 1


def _differ_in_places_only(call: ast.Call, others: Sequence[ast.Call]) -> bool:
    """`Blank()`, where the others are `Blank(device=device, dtype=dtype)`."""
    plain = not (call.args or call.keywords)
    said = {each.arg for other in others for each in other.keywords}
    return plain and said <= {"device", "dtype"} and not any(other.args for other in others)


def is_moved_there_later(module: Module, call: ast.Call, device: str) -> bool:
    """Later in the function something is moved there: it may be what this call has become."""
    function = module.function_of(call)
    return function is not None and any(
        (call.end_lineno or call.lineno) < each.lineno
        and any(module.text(said) == device for said in each.args[:1])
        for each in module.calls("to", inside=function)
    )
