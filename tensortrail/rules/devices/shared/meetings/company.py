"""What a fresh tensor goes together with: operations and calls that take it beside another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.meetings.certain_places import certainly, excluded
from tensortrail.rules.devices.shared.meetings.going_along import FOLLOWS, place_of_callers
from tensortrail.rules.devices.shared.meetings.legal import is_legal
from tensortrail.rules.devices.shared.written_for.makers import outermost
from tensortrail.rules.places import FunctionPlaces, Held, Meeting, Place, Where
from tensortrail.rules.shared.functions import called_here, parameter_names
from tensortrail.rules.shared.objects import given, last_name
from tensortrail.rules.view import FunctionNode, Module

_DEPTH = 4
"""Functions that arguments are handed through."""
_TAKES_ANYTHING = frozenset(
    "print zip dict len isinstance log info debug warning format enumerate save tuple list set "
    "append extend setattr update add_noise allclose assert_close all_reduce".split()
)
"""Calls that take tensors of any device, or move them themselves."""
Beside = tuple[ast.expr, Place]
"""Where it is taken together with another tensor, and the place of that one."""


def taken_beside(
    module: Module, function: FunctionNode, places: FunctionPlaces, made: ast.Call
) -> Beside | None:
    """The first operation or call that takes the tensor together with one that lies elsewhere."""
    held = places.seen.get(made)
    met = _met(function, places, made)
    may_be_passed = met is None and held is not None and not held.may_be_scalar
    return _passed(module, function, places, made) if may_be_passed else met


def _met(function: FunctionNode, places: FunctionPlaces, made: ast.Call) -> Beside | None:
    for meeting in places.meetings:
        for odd, other in meeting.pairs:
            place = certainly(odd, function, Where.DEFAULT) or _at_first(odd, meeting)
            if place is None or place.by is not made or is_legal(meeting, odd):
                continue
            there = place_of_callers(other)
            if there is not None and not excluded(meeting, place):
                return meeting.node, there
    return None


def _at_first(held: Held, meeting: Meeting) -> Place | None:
    """Its place in the first round of a loop, if nothing but the loop leads to the meeting."""
    found = [each for each in held.in_order if each.where is Where.DEFAULT]
    sure = len(found) == 1 and not found[0].given and not meeting.conditions
    others = [each for each in held.places if each.where is not Where.DEFAULT]
    return found[0] if sure and all(each.where in FOLLOWS for each in others) else None


def _passed(
    module: Module, function: FunctionNode, places: FunctionPlaces, made: ast.Call
) -> Beside | None:
    for call in module.nodes(ast.Call, outermost_of(module, function)):
        members = [places.seen.get(each) for each in _members(call)]
        own = [each for each in members if each is not None and _is_from(each, function, made)]
        if all(each.may_be_scalar for each in own) or takes_anything(call):
            continue  # a number is taken from the CPU
        name = module.qualified(call.func)
        if name.startswith("torch.") and not name.startswith("torch.ops."):
            continue  # what these take together is known
        if _keeps_them_apart(module, call):
            continue
        for other in members:
            there = place_of_callers(other) if other is not None else None
            if there is not None:
                return call, there
    return None


def _keeps_them_apart(module: Module, call: ast.Call, depth: int = _DEPTH) -> bool:
    """A function of this file that takes no two of its arguments together, nor hands two on to
    what may."""
    callee = called_here(module, call) if depth else None
    if callee is None or callee.args.vararg is not None or callee.args.kwarg is not None:
        return False
    names = parameter_names(callee)
    for meeting in module.places(callee).meetings:
        subjects = {each.subject for side in meeting.pairs[0] for each in side.places}
        if len(subjects & names) > 1:
            return False
    return all(
        len(names & {each.id for each in _members(inner) if isinstance(each, ast.Name)}) < 2
        or _keeps_them_apart(module, inner, depth - 1)
        for inner in module.nodes(ast.Call, callee)
    )


def is_operation(module: Module, call: ast.Call) -> bool:
    """An operation that is registered with torch, or one of its own with a backward."""
    name = module.qualified(call.func)
    owner, _, last = name.rpartition(".")
    facts = module.class_facts(owner) if last == "apply" and owner else None
    of_function = facts is not None and "torch.autograd.Function" in facts.bases
    return of_function or name.startswith("torch.ops.")


def _members(call: ast.Call) -> Iterator[ast.expr]:
    """What it is passed, tuples and lists that are written out opened."""
    for each in given(call):
        yield from each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each]


def _is_from(held: Held | None, function: FunctionNode, made: ast.Call) -> bool:
    place = certainly(held, function, Where.DEFAULT) if held is not None else None
    return place is not None and place.by is made


def takes_anything(call: ast.Call) -> bool:
    func = call.func
    name = last_name(func)
    return name in _TAKES_ANYTHING


def outermost_of(module: Module, node: ast.AST) -> ast.AST:
    return next(outermost(module, [node]), node)
