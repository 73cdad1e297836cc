"""Whether what is inferred of a tensor goes where the caller wants it on every path."""

from __future__ import annotations

from tensortrail.rules.places import Held, Place, What, Where

FOLLOWS = frozenset({Where.OF, Where.DEVICE, Where.SELF})
"""Where the caller decides the device."""


def place_of_callers(held: Held) -> Place | None:
    """Its place, if it goes where the caller wants it on every path."""
    return held.in_order[0] if held.what is What.TENSOR and goes_with_callers(held) else None


def goes_with_callers(held: Held) -> bool:
    known = held.what in (What.TENSOR, What.UNKNOWN) and bool(held.places)
    return known and all(each.where in FOLLOWS for each in held.places)
