"""Why a tensor that is made without a device belongs where others are."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.patterns import pattern
from tensortrail.rules import Module
from tensortrail.rules.devices.shared.meetings.company import Beside, taken_beside
from tensortrail.rules.devices.shared.meetings.other_factories import (
    given_a_device,
)
from tensortrail.rules.devices.shared.meetings.returned_or_filled import is_returned
from tensortrail.rules.devices.shared.meetings.sized_like import (
    whose_dtype,
    whose_shape,
    whose_size,
)
from tensortrail.rules.devices.shared.written_for.goes_along import goes_along
from tensortrail.rules.places import Where
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import FunctionNode

_CHOSEN = pattern(r"device|cuda|cpu|gpu|meta|isinstance|is_tensor|numpy|\bnp\b|trac|proxy|jit")
"""Words of conditions under which the CPU is meant, or there is no tensor beside it."""


@unchanging(frozen=True, slots=True)
class Evidence:
    """Why the tensor belongs where others are."""

    model: ast.expr | None
    """The tensor whose dtype or shape it has."""
    is_typed: bool
    others: Sequence[ast.Call]
    """Factories of the function that are given a device."""
    beside: Beside | None


def evidence_of(module: Module, function: FunctionNode, call: ast.Call) -> Evidence | None:
    places = module.places(function)
    held = places.seen.get(call)
    place = held.only if held is not None else None
    if held is None or place is None or place.where is not Where.DEFAULT or held.rank == 0:
        return None
    if any(_CHOSEN.search(each.text) for each in module.guards_of(call)):
        return None
    others = given_a_device(module, function, call)
    like = typed = whose_dtype(places, call)
    if like is None and not held.may_be_scalar:
        like = whose_shape(module, places, call) or whose_size(module, places, call)
    if not others and like is None:
        return None
    beside = taken_beside(module, function, places, call)
    if beside is None and like is not typed and not follows(module, function, like):
        return None
    if beside is None and (like is None or not is_returned(module, function, places, call)):
        return None
    if beside is None and like is not None and module.text(like).startswith("self."):
        return None  # what a module makes like its own weight may become that weight
    return Evidence(like, typed is not None, others, beside)


def follows(module: Module, function: FunctionNode, like: ast.expr | None) -> bool:
    """What the caller passes for it may be on a GPU, as far as can be seen."""
    return like is not None and goes_along(module, function, module.text(like), strict=True)
