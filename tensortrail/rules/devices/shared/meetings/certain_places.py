"""Where an operand certainly is, and under which condition."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.patterns import pattern
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.written_for.device_choices import is_choice
from tensortrail.rules.places import (
    Held,
    Meeting,
    Place,
    What,
    Where,
    opposite,
)
from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.view import FunctionNode, Module

TYPE_ASKED = pattern(r"(?:not )?(?:isinstance|(?:torch\.)?is_tensor)\((\w+)(?:, .+)?\)")
_OF_NO_TENSOR = pattern(
    r"(?:isinstance\((\w+), (?:int|float)\)(?: or isinstance\(\1, (?:int|float)\))*"
    r"|type\((\w+)\) (?:is|==) (?:int|float)|not (?:torch\.)?is_tensor\((\w+)\))"
)
"""Conditions under which an argument is a number."""
_NUMBERS = pattern(r"\b(?:int|float|bool|Number)\b")


def excluded(meeting: Meeting, place: Place) -> bool:
    """The meeting stands where the condition of the place does not hold."""
    return bool(place.given) and opposite(place.given) in meeting.conditions


def optional_arguments(function: FunctionNode) -> set[str]:
    """Parameters that are None unless they are given."""
    return {
        each.arg
        for each, default in with_defaults(function.args)
        if isinstance(default, ast.Constant) and default.value is None
    }


def certainly(held: Held, function: FunctionNode, where: Where) -> Place | None:
    """Its place of this sort, if it has no other on any path, or that of an argument left out."""
    if held.what is not What.TENSOR:
        return None
    found = [each for each in held.in_order if each.where is where]
    if len(found) != 1:
        alike = bool(found) and all(same(each, found[0]) for each in held.places)
        return replace(found[0], given="") if alike else None
    place = found[0]
    if not place.given:
        return place if len(held.places) == 1 else None
    if any(each.given == place.given for each in held.places if each is not place):
        return None  # under this very condition it may lie elsewhere too
    left_out = {f"{name} is None" for name in optional_arguments(function)}
    chosen = place.given in left_out or is_choice(place.given, function)
    return place if chosen or _asks_what_is_given(place.given, function) else None


def _asks_what_is_given(condition: str, function: FunctionNode) -> bool:
    """`not is_tensor(x)` of an argument: callers give a tensor or a list, and numbers seldom."""
    asked = TYPE_ASKED.fullmatch(condition)
    if asked is None or _NUMBERS.search(condition):
        return False
    return asked.group(1) in parameter_names(function)


def same(one: Place, other: Place) -> bool:
    return one.where is other.where and one.subject == other.subject


def where_given(held: Held, function: FunctionNode) -> Place | None:
    """Its place on every path but those on which the argument is a number, as after
    `if type(val) is float: val = torch.tensor(val)`."""
    if held.only is not None:
        return held.only
    left = [each for each in held.in_order if not _is_of_a_number(each, function)]
    return left[0] if len(left) == 1 and left[0].where is Where.OF else None


def _is_of_a_number(place: Place, function: FunctionNode) -> bool:
    asked = _OF_NO_TENSOR.fullmatch(place.given) if place.where is Where.DEFAULT else None
    return asked is not None and bool(set(asked.groups()) & parameter_names(function))


def is_module(module: Module, function: FunctionNode, made: Place) -> bool:
    """Not a weight that a loss is made with."""
    held = module.places(function).seen.get(made.by) if isinstance(made.by, ast.Call) else None
    return held is not None and held.what is What.MODULE
