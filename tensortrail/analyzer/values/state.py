"""What is believed at one point of a function: values by access path, placements of objects."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.values.beliefs import Beliefs
from tensortrail.rules.words import (
    NOT_CONSTANT,
    NOWHERE,
    UNKNOWN_VALUE,
    Contents,
    Owner,
    Placement,
    Value,
)

_MANY_ORIGINS = 8
_MANY_SHARED = 64


class State:
    __slots__ = ("places", "values")

    def __init__(
        self, values: Beliefs[Value] | None = None, places: Beliefs[Placement] | None = None
    ) -> None:
        self.values: Beliefs[Value] = values if values is not None else Beliefs()
        self.places: Beliefs[Placement] = places if places is not None else Beliefs()

    @property
    def has_moved(self) -> bool:
        """Something was moved on the way here."""
        return not self.places.is_empty

    def copy(self) -> State:
        return State(self.values.copy(), self.places.copy())

    def bind(self, path: str, value: Value) -> None:
        """`path` now names another object: what was known below the old one is gone."""
        self.values.forget(path)
        self.places.forget(path)
        self.values[path] = value

    def move(self, path: str, placement: Placement) -> None:
        """The object at `path`, and all that hangs below it, changes its place in situ."""
        if path:
            self.places.forget(path)
            self.places[path] = placement

    def place_of(self, path: str) -> Placement:
        """Where the nearest moved object at or above `path` was put."""
        while path and self.has_moved:
            found = self.places.get(path)
            if found is not None:
                return found
            path = path.rpartition(".")[0]
        return NOWHERE


def join(one: State | None, other: State | None) -> State | None:
    """What holds whichever way control came; None is a way control cannot come."""
    if one is None or other is None:
        return one or other
    return State(
        one.values.joined(other.values, _either_value), one.places.joined(other.places, _same_place)
    )


def _either_value(path: str, one: Value | None, other: Value | None) -> Value | None:
    if one is not None and other is not None:
        return one if one is other else join_values(one, other)
    return (one or other) if "." not in path and "[" not in path else None


def _same_place(path: str, one: Placement | None, other: Placement | None) -> Placement | None:
    return one if one is other or one == other else None


def join_values(one: Value, other: Value) -> Value:
    if one is other:
        return one
    if one.constant is None:
        return _besides_none(other, one)
    if other.constant is None:
        return _besides_none(one, other)
    return Value(
        kinds=one.kinds | other.kinds if one.kinds and other.kinds else frozenset(),
        placement=_same_place("", one.placement, other.placement) or NOWHERE,
        sure=one.sure and other.sure,
        cls=one.cls if one.cls == other.cls else "",
        owner=one.owner if one.owner == other.owner else Owner.UNKNOWN,
        path=one.path if one.path == other.path else "",
        shares=tuple(dict.fromkeys(one.shares + other.shares))[:_MANY_SHARED],
        origins=_in_source_order(one.origins + other.origins),
        constant=one.constant if one.constant == other.constant else NOT_CONSTANT,
        asked=one.asked if one.asked == other.asked else _in_source_order(one.asked + other.asked),
        contents=join_contents(one.contents, other.contents),
    )


def join_contents(one: Contents | None, other: Contents | None) -> Contents | None:
    """What a container holds that is one or the other of two, or gets what the other holds."""
    if one is other or one is None or other is None:
        return one if one is other else None
    if one.by_key is not other.by_key:
        return None
    if one.declared or other.declared:
        return one if one.declared else other
    if one.each is None or other.each is None:
        held = one if other.each is None else other
        return Contents(held.each, by_key=held.by_key)
    alike = len(one.parts) == len(other.parts)
    return Contents(
        one.each if one.each is other.each else join_values(one.each, other.each),
        tuple(map(join_values, one.parts, other.parts)) if alike else (),
        one.by_key,
    )


def _besides_none(value: Value, none: Value) -> Value:
    """None on one path says nothing of what the value is when there is one."""
    if value.constant is None:
        return replace(value, origins=_in_source_order(value.origins + none.origins))
    if value is UNKNOWN_VALUE:
        return value
    return replace(value, origins=_in_source_order(value.origins + none.origins))


def _in_source_order(origins: tuple[ast.expr, ...]) -> tuple[ast.expr, ...]:
    unique = dict.fromkeys(origins)
    return tuple(sorted(unique, key=lambda each: (each.lineno, each.col_offset)))[:_MANY_ORIGINS]
