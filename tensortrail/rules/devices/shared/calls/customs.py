"""What a file does nearly always: calls that are given a device, and the few that are not."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from tensortrail.rules.devices.shared.written_for.makers import FACTORIES
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import Module

MAKERS = (*FACTORIES, "as_tensor", "asarray")
K = TypeVar("K")


@unchanging(frozen=True, slots=True)
class Departure:
    """A call that leaves out what others of its kind are given."""

    call: ast.Call
    usual: Sequence[ast.Call]
    """The others, nearest first."""


def is_factory_of_torch(module: Module, call: ast.Call) -> bool:
    return module.qualified(call.func).startswith("torch.")


def grouped(calls: Iterable[ast.Call], by: Callable[[ast.Call], K]) -> dict[K, list[ast.Call]]:
    found: dict[K, list[ast.Call]] = {}
    for call in calls:
        found.setdefault(by(call), []).append(call)
    return found


def named(call: ast.Call) -> set[str | None]:
    return {each.arg for each in call.keywords}


def may_be_given_anything(call: ast.Call) -> bool:
    """`*` and `**` may hold a device."""
    return None in named(call) or any(isinstance(each, ast.Starred) for each in call.args)


def departures(
    calls: Sequence[ast.Call], at_least: int, most_in_hundred: int
) -> Iterator[Departure]:
    """Of calls of one kind, those without `device`, if they are few beside those with it."""
    sure = [each for each in calls if not may_be_given_anything(each)]
    usual = [each for each in sure if "device" in named(each)]
    others = [each for each in sure if "device" not in named(each)]
    if len(usual) < at_least or 100 * len(others) > most_in_hundred * len(usual):
        return
    for call in others:
        near = sorted(usual, key=lambda each: abs(each.lineno - call.lineno))
        yield Departure(call, near)
