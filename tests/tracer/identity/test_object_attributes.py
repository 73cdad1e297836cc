"""Attributes are read without running code of the object's class."""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tensortrail.tracer.identity.object_attributes import attributes_of


@dataclass
class Pair:
    x: int
    y: int


class Loud:
    def __init__(self) -> None:
        self.x = 1

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("the program's code ran")


class Hidden:
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise AssertionError("the program's code ran")


class Slots:
    __slots__ = ("x",)


MADE: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "a dataclass": (lambda: Pair(1, 2), ["x", "y"]),
    "a dict of the program": (lambda: UserDict({"ids": 1}), ["ids"]),
    "one that answers itself": (Loud, ["x"]),
    "one that answers for __dict__": (Hidden, []),
    "slots": (Slots, []),
    "a class": (lambda: Pair, []),
    "a module": (lambda: sys, []),
    "a function": (lambda: attributes_of, []),
    "a number": (lambda: 3, []),
}


@pytest.mark.parametrize("name", MADE)
def test_what_an_object_keeps(name: str) -> None:
    make, names = MADE[name]
    assert [each for each, _ in attributes_of(make())] == names
