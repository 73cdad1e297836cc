"""What the user's code calls a tensor."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tensortrail.rules.shared.calls import quoted
from tensortrail.tracer.identity.sites import frames
from tensortrail.tracer.identity.variables import variables

DEEPEST, MOST_HELD = 2, 64
"""Containers in containers that are looked into for a name, and how many items of each."""


def variable_of(tensor: Any) -> str:
    """What the user's innermost frame calls the tensor; "" if it has no name there."""
    frame, _ = frames(sys._getframe(1))
    if frame is None:
        return ""
    own = variables(frame)
    for name in (*frame.f_code.co_varnames, *frame.f_code.co_freevars, *frame.f_code.co_names):
        if own.get(name) is tensor or frame.f_globals.get(name) is tensor:
            return name
    held = (_held_as(tensor, name, value, DEEPEST) for name, value in _containers(own))
    return next(filter(None, held), "")


def _containers(own: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The variables, and then what `self` keeps: `self.shadow`."""
    yield from own.items()
    with suppress(AttributeError):
        kept = object.__getattribute__(own.get("self"), "__dict__")
        yield from ((f"self.{name}", kept[name]) for name in list(kept) if name[:1] != "_")


def _held_as(tensor: Any, path: str, value: Any, depth: int) -> str:
    """`target["boxes"]`: the tensor in a plain container, which runs no code of the user's."""
    if value is tensor:
        return path
    if depth and type(value) in (dict, list, tuple):
        pairs = value.items() if type(value) is dict else enumerate(value)
        for key, each in itertools.islice(pairs, MOST_HELD):
            if type(key) in (str, int):
                name = f"{path}[{quoted(key) if type(key) is str else key}]"
                if found := _held_as(tensor, name, each, depth - 1):
                    return found
    return ""
