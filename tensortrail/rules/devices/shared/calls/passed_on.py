"""Which parameters of a function are passed on to calls, and which are never read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.patterns import pattern
from tensortrail.rules import Module
from tensortrail.rules.devices.shared.calls.accepted import is_maker, is_read
from tensortrail.rules.devices.shared.calls.customs import may_be_given_anything, named
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.view import FunctionNode

_PASSED_ON = pattern("device|dtype|map_location|offload")
_A_DEVICE = pattern(r"(?:(?:init|exec|execution|target|main|model|work|own)_)?device")
"""Variables that say where a function works."""
OTHER_OF_PAIR = {"device": "dtype", "dtype": "device"}
_ENOUGH = 2
"""Parameters that a call of unknown code passes on, beside the one that is dropped."""


def moved_without(module: Module, function: FunctionNode, name: str) -> ast.Call | None:
    """`x.to(device=device)` in a function that is given a `dtype` too."""
    for call in module.calls("to", inside=function) if name in OTHER_OF_PAIR else ():
        values = [each.value for each in call.keywords if each.arg == OTHER_OF_PAIR[name]]
        is_given = any(
            isinstance(each, ast.Name) and each.id == OTHER_OF_PAIR[name] for each in values
        )
        if is_given and len(call.keywords) == 1 and not call.args:
            return call
    return None


def passing_on(
    module: Module, function: FunctionNode, name: str
) -> Iterator[tuple[ast.Call, list[str]]]:
    """Calls of what is not known, which pass two or more of the parameters beside it on."""
    names = {each.arg for each in parameters(function)} - {name}
    if name not in {each.arg for each in parameters(function)}:
        return
    for call in module.nodes(ast.Call, function):
        others = [each.arg for each in call.keywords if _is_passed_on(each) and each.arg in names]
        others += [each.id for each in call.args if isinstance(each, ast.Name) and each.id in names]
        alike = [each for each in others if each and _PASSED_ON.search(each)]
        known = is_maker(module, call) or may_be_given_anything(call)
        if len(others) >= _ENOUGH and alike and not known and not module.parameters_of(call):
            yield call, alike


def is_half_a_pair(function: FunctionNode, call: ast.Call, name: str) -> bool:
    """`super().__init__(n, dtype=dtype)` of a module that is given `device` and `dtype`."""
    func = call.func
    own = isinstance(func, ast.Attribute) and func.attr == function.name == "__init__"
    return own and bool({"device": {"dtype"}, "dtype": {"device"}}.get(name, set()) & named(call))


def _is_passed_on(keyword: ast.keyword) -> bool:
    return isinstance(keyword.value, ast.Name) and keyword.value.id == keyword.arg


def unread_parameters(module: Module, function: FunctionNode) -> Iterator[str]:
    names = {each.arg for each in parameters(function) if _PASSED_ON.search(each.arg)}
    for statement in module.nodes(ast.Assign, function):
        target = statement.targets[0]
        if isinstance(target, ast.Name) and _A_DEVICE.fullmatch(target.id):
            names.add(target.id)
    yield from (each for each in sorted(names) if not is_read(module, function, each))
