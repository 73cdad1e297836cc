"""Tensors of a function that go the same way, of which some are put on a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.calls.customs import MAKERS, is_factory_of_torch, named
from tensortrail.rules.devices.shared.calls.moved_inside import moves_its_arguments
from tensortrail.rules.devices.shared.meetings.returned_or_filled import is_returned
from tensortrail.rules.devices.shared.meetings.same_way import Kind, Way, bound, ways
from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.objects import receiver
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import TENSORS

_OF_NUMBERS = frozenset({Kind.WRITTEN_TOGETHER, Kind.SAME_CALLEE})
"""Ways of a tensor without dimension that say something: elsewhere it may be on any device."""
_OF_MOVES = frozenset({Kind.ONE_CALL, Kind.SAME_CALLEE})
"""Ways that say something beside a tensor that was moved to a device, not made there."""
_OF_ONE_NAME = frozenset({Kind.OTHER_BRANCH, Kind.SAME_CALLEE})
_ENOUGH = {Kind.ATTRIBUTES: 2, Kind.RETURNED: 2}


class Sibling(NamedTuple):
    call: ast.Call
    """Given a device, or moved to one."""
    kind: Kind
    taken: ast.AST
    """What takes the one without device in the same way."""


def device_given_to(module: Module, call: ast.Call) -> str:
    said = said_device(module, call)
    return module.text(said) if said is not None else ""


def siblings_in(module: Module, function: FunctionNode, call: ast.Call) -> list[Sibling]:
    """Tensors that were put on a device and go the same way, if no other was left without."""
    placed = [each for each in module.once(_placed, function) if _is_of(module, function, each)]
    if not placed or not any(each is not call for each in placed):
        return []
    made = [each for each in module.calls(*MAKERS, inside=function) if each is not call]
    if any(_is_left(module, each) for each in made):
        return []
    mine = ways(module, function, call)
    target = bound(module, call)
    own = {each.id for each in ast.walk(target or ast.Pass()) if isinstance(each, ast.Name)}
    found = [
        Sibling(other, way.kind, mine[way])
        for other in placed
        if device_given_to(module, other).partition(".")[0] not in own
        for way in ways(module, function, other)
        if way in mine and _says_something(module, function, call, other, way)
        if way.kind in _OF_ONE_NAME or not _is_bound_anew(module, other, target)
    ]
    found += _returned_beside(module, function, call, placed)
    found = [each for each in found if not _is_moved_inside(module, each)]
    return [each for each in found if _are_enough(found, each.kind)]


def _is_bound_anew(module: Module, other: ast.Call, target: ast.expr | None) -> bool:
    """The name that held the other one holds this from here on."""
    before = bound(module, other)
    same = isinstance(before, ast.Name) and isinstance(target, ast.Name) and before.id == target.id
    return same and before is not target


def _is_moved_inside(module: Module, sibling: Sibling) -> bool:
    """The function that takes one after the other moves what it is given."""
    taken = sibling.taken if sibling.kind is Kind.SAME_CALLEE else None
    return isinstance(taken, ast.Call) and moves_its_arguments(module, taken)


def _returned_beside(
    module: Module, function: FunctionNode, call: ast.Call, placed: Sequence[ast.Call]
) -> Iterator[Sibling]:
    """Of a function that gives back the tensor, what is made on the device it is given."""
    given = parameter_names(function)
    places = module.places(function)
    held = places.seen.get(call)
    if held is None or held.may_be_scalar or not is_returned(module, function, places, call):
        return
    for other in placed:
        if is_factory_of_torch(module, other) and device_given_to(module, other) in given:
            yield Sibling(other, Kind.RETURNED, call)


def _placed(module: Module, function: FunctionNode) -> list[ast.Call]:
    """Factories and moves of the function that are given a device which is a value."""
    made = module.calls(*MAKERS, inside=function)
    moved = (each for each in module.calls("to", inside=function) if not each.keywords)
    return [
        *(each for each in made if _is_made_there(module, each)),
        *(each for each in moved if "device" in device_given_to(module, each)),
    ]


def _is_of(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    return module.function_of(call) is function


def _is_made_there(module: Module, call: ast.Call) -> bool:
    said = said_device(module, call)
    return (
        is_factory_of_torch(module, call)
        and said is not None
        and not isinstance(said, ast.Constant)
    )


def _is_left(module: Module, call: ast.Call) -> bool:
    """Another factory is given no device, or the CPU: the function knows of both."""
    if not is_factory_of_torch(module, call) or None in named(call):
        return False
    said = device_given_to(module, call)
    return not said or "cpu" in said


def _says_something(
    module: Module, function: FunctionNode, call: ast.Call, other: ast.Call, way: Way
) -> bool:
    """What is moved is passed on beside anything; and a number may be on any device."""
    if not is_factory_of_torch(module, other):
        known = way.kind is Kind.SAME_CALLEE or _moves_a_tensor(module, other)
        if way.kind not in _OF_MOVES or not known:
            return False
    held = module.places(function).seen.get(call)
    if held is None or not held.may_be_scalar:
        return True
    return way.kind in _OF_NUMBERS and not isinstance(module.parent(call), ast.BinOp)


def _moves_a_tensor(module: Module, move: ast.Call) -> bool:
    """What is moved may be anything that has a `to`, and a call that takes one such and a tensor
    may want the tensor on the CPU."""
    owner = receiver(move)
    return owner is not None and module.kind_of(owner) in TENSORS


def _are_enough(found: Sequence[Sibling], kind: Kind) -> bool:
    return len({each.call for each in found if each.kind is kind}) >= _ENOUGH.get(kind, 1)
