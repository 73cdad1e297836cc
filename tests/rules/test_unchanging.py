"""Small objects that nobody changes are dataclasses, with comparisons of their own."""

from __future__ import annotations

import pickle
from dataclasses import field, fields, replace

from tensortrail.rules.unchanging import unchanging


@unchanging(frozen=True, slots=True)
class Point:
    x: int
    seen: int = field(default=0, compare=False)


@unchanging(frozen=True, slots=True)
class Spot(Point):
    """Another class with the same fields."""


def test_what_is_not_to_be_compared_is_neither_compared_nor_hashed() -> None:
    assert Point(1, seen=2) == Point(1, seen=3)
    assert hash(Point(1, seen=2)) == hash(Point(1, seen=3))
    assert Point(1) != Point(2)


def test_another_class_is_another_object() -> None:
    assert Point(1) != Spot(1)
    pair: object = (1, 0)
    assert Point(1) != pair


def test_it_is_a_dataclass_that_shows_all_its_fields() -> None:
    assert repr(replace(Point(1), seen=4)) == "Point(x=1, seen=4)"
    assert [each.name for each in fields(Point)] == ["x", "seen"]


def test_it_goes_to_another_process_and_back() -> None:
    assert pickle.loads(pickle.dumps(Point(7, seen=8))).seen == 8
