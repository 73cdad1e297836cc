"""What holds whichever way control came: joins of what is held, and of environments."""

from __future__ import annotations

from dataclasses import replace

from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.rules.places import MAYBE_SCALAR, UNKNOWN_HELD, Held, Place, What, Where, opposite

_UNKNOWN = Place(Where.UNKNOWN)
_MOST_PLACES = 12


def join(one: Held, other: Held) -> Held:
    if one == other:
        return one
    if one.what is What.NONE:
        return other
    if other.what is What.NONE:
        return one
    if one.what is not other.what:
        return _of_unlike(one, other)
    places = one.places | other.places
    if not one.places or not other.places:
        places = places | {_UNKNOWN} if places else places
    parts = _parts(one.parts, other.parts) if one.keys == other.keys else None
    unlike_boxes = one.what is What.BOX and parts is None
    of_modules = one.each if one.what is What.MODULE and one.each == other.each else None
    return Held(
        what=one.what,
        places=frozenset() if len(places) > _MOST_PLACES else places,
        rank=_rank(one.rank, other.rank),
        path=one.path if one.path == other.path else "",
        parts=parts,
        keys=one.keys if parts is not None else (),
        each=join(member(one), member(other)) if unlike_boxes else of_modules,
        cls=one.cls if one.cls == other.cls else "",
        made=one.made if one.made is other.made else None,
        moved=one.moved or other.moved,
        was=one.was | other.was,
    )


def _of_unlike(one: Held, other: Held) -> Held:
    """A tensor on one path and something else on the other: what is known of it is kept."""
    for tensor, else_ in ((one, other), (other, one)):
        if tensor.what is What.TENSOR and _holds_tensors(else_):
            parts = tuple(join(each, tensor) for each in else_.parts or ())
            each = None if parts else join(member(else_), tensor)
            return Held(What.BOX, parts=parts or None, each=each)  # taken in the same way
        if tensor.what is What.TENSOR and tensor.places and else_.what is What.NUMBER:
            return replace(tensor, what=What.UNKNOWN)
        if tensor.what is What.TENSOR and else_.what is What.UNKNOWN:
            return replace(tensor, places=tensor.places | (else_.places or {_UNKNOWN}))
    return UNKNOWN_HELD


def _holds_tensors(box: Held) -> bool:
    """A tuple of tensors without names, as of the states of an LSTM."""
    return box.what is What.BOX and not box.keys and member(box).what is What.TENSOR


def _rank(one: int | None, other: int | None) -> int | None:
    if one == other:
        return one
    return MAYBE_SCALAR if {one, other} & {0, MAYBE_SCALAR} else None


def _parts(one: tuple[Held, ...] | None, other: tuple[Held, ...] | None) -> tuple[Held, ...] | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(join(left, right) for left, right in zip(one, other, strict=True))


def member(box: Held) -> Held:
    """Any member of a box."""
    if box.each is not None:
        return box.each
    if not box.parts:
        return Held(What.NONE) if box.parts is not None else UNKNOWN_HELD
    found: Held | None = None
    for part in box.parts:
        found = part if found is None else join(found, part)
    return found if found is not None else UNKNOWN_HELD


def join_environments(
    one: Environment | None, other: Environment | None, condition: str = ""
) -> Environment | None:
    """`condition` holds where `one` comes from; what differs remembers it."""
    if one is None or other is None:
        left = one or other
        if left is not None and condition:
            left.conditions += (opposite(condition) if one is None else condition,)
        return left

    def either(path: str, left: Held | None, right: Held | None) -> Held | None:
        if left is right:
            return left
        of_one_way = left is None or right is None
        lost = of_one_way and path.startswith("self.")
        return None if lost else _tagged_join(left, right, condition)

    joined = Environment()
    joined.values = one.values.joined(other.values, either)
    joined.conditions = _in_both(one.conditions, other.conditions)
    joined.ambient = one.ambient
    return joined


def _in_both(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return one if one == other else tuple(each for each in one if each in other)


def _tagged_join(one: Held | None, other: Held | None, condition: str) -> Held | None:
    if one is None or other is None:
        only = one or other
        assert only is not None
        return under(only, condition if one is not None else opposite(condition), condition)
    return tagged_join(one, other, condition)


def tagged_join(one: Held, other: Held, condition: str) -> Held:
    """What either way gives; where they differ in their places, with the condition of each."""
    if one == other:
        return one
    alike = one.places == other.places and one.what is not What.BOX
    if not condition or alike or What.NONE in (one.what, other.what):
        return join(one, other)
    return join(under(one, condition, condition), under(other, opposite(condition), condition))


def without_locals(held: Held) -> Held:
    """What is left of it outside of the function: its variables mean nothing there."""
    if any(each.where is Where.LOCAL for each in held.places):
        return replace(held, places=frozenset())
    return held


def under(held: Held, given: str, condition: str) -> Held:
    """The same, with places that are remembered to hold under a condition only."""
    if not condition or not (held.places or held.what is What.BOX):
        return held
    tagged = frozenset(x if x.given else replace(x, given=given) for x in held.places)
    if held.what is not What.BOX:
        return replace(held, places=tagged)
    parts = held.parts and tuple(under(each, given, condition) for each in held.parts)
    each = held.each and under(held.each, given, condition)
    return replace(held, places=tagged, parts=parts, each=each)
