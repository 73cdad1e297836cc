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


class Proxy:
    """As those that make their object when they are first asked."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise AssertionError("the program's code ran")


def test_a_proxy_below_what_is_saved_is_not_asked() -> None:
    torch = pytest.importorskip("torch")
    from tensortrail.tracer.hooks.shared.checkpoint_tensors import tensors_below

    held = Pair(Proxy(), {"row": torch.ones(2)})  # type: ignore[arg-type]
    assert [key for key, _ in tensors_below(held, in_objects=True)] == ["y.row"]
    assert not [*tensors_below(held)]
