"""Whether a tensor goes where the caller wants it."""

from __future__ import annotations

from tensortrail.rules.devices.shared.meetings.certain_places import TYPE_ASKED
from tensortrail.rules.devices.shared.modules.kept_where_made import keeps_where_made
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.goes_along import goes_along
from tensortrail.rules.devices.shared.written_for.preparing import is_for
from tensortrail.rules.places import (
    Held,
    Place,
    What,
    Where,
)
from tensortrail.rules.shared.functions import is_static, parameter_names
from tensortrail.rules.view import FunctionNode, Module


def _is_set_up(module: Module, function: FunctionNode) -> bool:
    return sets_up(function)


def follows(module: Module, function: FunctionNode, held: Held) -> Place | None:
    """The place of a tensor that goes where the caller wants it on every path; else None."""
    places = held.in_order if held.what is What.TENSOR else ()
    if places and all(_follows(module, function, each) for each in places):
        return places[0]
    return None


def follows_if_given(
    module: Module, function: FunctionNode, held: Held, made: Place
) -> Place | None:
    """Its place where the argument is a tensor: `x = torch.arange(x) if isinstance(x, int) else x`
    lies where the caller put it, and on the default device only for who gives none. What it meets
    is made in both cases."""
    places = [each for each in held.in_order if not _is_for_no_tensor(each, function)]
    left = held.what in (What.TENSOR, What.UNKNOWN) and len(places) < len(held.places)
    if made.given or not left or not places:
        return None
    own = all(each.where is Where.OF and each.given for each in places)
    return places[0] if own and all(_follows(module, function, x) for x in places) else None


def _is_for_no_tensor(place: Place, function: FunctionNode) -> bool:
    asked = TYPE_ASKED.fullmatch(place.given) if place.where is Where.DEFAULT else None
    return asked is not None and asked.group(1) in parameter_names(function)


def _follows(module: Module, function: FunctionNode, place: Place) -> bool:
    if place.where is Where.LITERAL:
        return place.subject != "cpu" and not place.given
    if place.where is Where.SELF:
        own = function is not module.top and not is_static(function)
        moves = own and not keeps_where_made(module, function)
        return moves and not is_for(module, function, _is_set_up)
    if place.where is Where.OF:
        return goes_along(module, function, place.subject)
    return place.where is Where.DEVICE


def is_only_believed(module: Module, function: FunctionNode, place: Place) -> bool:
    """Nothing but the file around says that the argument may be on a GPU."""
    believed = place.where in (Where.OF, Where.LOCAL)
    return believed and not goes_along(module, function, place.subject, strict=True)
