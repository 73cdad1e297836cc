"""Which operand of a meeting is out of place, and where the other one lies."""

from __future__ import annotations

import ast
import re

from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.meetings.certain_places import certainly, excluded, same
from tensortrail.rules.devices.shared.meetings.following import follows, follows_if_given
from tensortrail.rules.devices.shared.meetings.legal import is_index_of_what_follows, is_legal
from tensortrail.rules.devices.shared.meetings.modelled import of_its_model
from tensortrail.rules.devices.shared.meetings.place_of_computed import place_of_computed
from tensortrail.rules.devices.shared.written_for.goes_along import goes_along
from tensortrail.rules.places import (
    KERNEL,
    Held,
    Meeting,
    Place,
    What,
    Where,
)
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import FunctionNode, Module

_GIVEN = frozenset({Where.OF, Where.DEVICE, Where.SELF})
_ABOUT_DEVICES = pattern("device|cuda|cpu|gpu|meta|nccl|backend", re.IGNORECASE)


def out_of_place(
    module: Module, function: FunctionNode, meeting: Meeting, where: Where
) -> tuple[Place, Place] | None:
    """The place of what is certainly on the CPU in this way, and the place of what it meets."""
    for odd, other in meeting.pairs:
        made = certainly(odd, function, where) or _unlike_its_other_path(odd, other, where)
        if made is None or excluded(meeting, made) or _may_stay(meeting, odd, made, other):
            continue
        if meeting.operation == KERNEL and _is_without_elements(made):
            continue
        there = follows(module, function, other) or _in_kernel(meeting, other)
        there = there or follows_if_given(module, function, other, made)
        there = there or _where_its_model_is(module, function, made, other)
        there = there or place_of_computed(module, function, other)
        if there is not None and not _is_one_move(made, there):
            return made, there
    return None


def _is_one_move(made: Place, there: Place) -> bool:
    """`torch.stack([row.to(device) for row in rows])`: all go where this one call puts them."""
    return made.by is not None and made.by is there.by


def _where_its_model_is(
    module: Module, function: FunctionNode, made: Place, other: Held
) -> Place | None:
    """A variable of which nothing is known but that the tensor was made after it."""
    if function is module.top:
        return None
    there = of_its_model(module, function, made, other)
    along = there is not None and goes_along(module, function, there.subject)
    return there if along else None


def _in_kernel(meeting: Meeting, other: Held) -> Place | None:
    """Who passes a tensor on to a kernel has it on a GPU."""
    is_taken = meeting.operation == KERNEL and other.what is What.TENSOR
    there = other.only if is_taken else None
    return there if there is not None and there.where in _GIVEN else None


def _is_without_elements(made: Place) -> bool:
    """`torch.empty(0)` where a kernel wants a tensor: it reads nothing there."""
    if not isinstance(made.by, ast.Call) or called(made.by) not in ("empty", "zeros", "ones"):
        return False
    listed = [each for size in made.by.args for each in getattr(size, "elts", [size])]
    return any(isinstance(each, ast.Constant) and each.value == 0 for each in listed)


def _may_stay(meeting: Meeting, odd: Held, made: Place, other: Held) -> bool:
    """The one without dimension has to be on the CPU, so it is not the one that is on a GPU."""
    if made.where is not Where.LITERAL or made.subject == "cpu":
        return is_legal(meeting, odd)
    without = meeting.by_element and other.rank == 0
    return without or is_index_of_what_follows(meeting, odd)


def _unlike_its_other_path(held: Held, other: Held, where: Where) -> Place | None:
    """Its place of this sort on one path, if on the other it lies where the other operand does."""
    found = [each for each in held.places if each.where is where]
    if held.what is not What.TENSOR or len(found) != 1 or not other.places:
        return None
    place = found[0]
    rest = [each for each in held.places if each is not place and each.where is not Where.UNKNOWN]
    asked = place.given and not _ABOUT_DEVICES.search(place.given)
    if not asked or not rest or any(each.given == place.given for each in held.places - {place}):
        return None
    along = all(same(each, instead) for each in other.places for instead in rest)
    return place if along else None
