"""What a pickle holds beside plain values: names, calls and references, none of them followed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

_LONGEST_PATH = 1000


class Name(NamedTuple):
    """A class or function that loading would import."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Made:
    """What a call would give: the name called, its arguments, the state it gets afterwards."""

    __slots__ = ("arguments", "items", "state", "what")

    def __init__(self, what: Any, arguments: Any) -> None:
        self.what, self.arguments = what, arguments
        self.state: Any = None
        self.items: dict[Any, Any] = {}


class Reference:
    """What the pickle leaves to its reader to find: a storage."""

    __slots__ = ("identity",)

    def __init__(self, identity: Any) -> None:
        self.identity = identity


def values_in(root: Any, kind: type = Made) -> Iterator[tuple[str, Any]]:
    """Every value of the kind below the root once, with the keys that lead to it, by dots."""
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, kind):
            yield path, value
        found = [(_joined(path, key), each) for key, each in _below(value)]
        waiting += reversed([each for each in found if isinstance(each[1], _WITH_PARTS)])


def _below(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, (list, tuple)):
        yield from enumerate(value)
    elif isinstance(value, Made):
        yield from value.items.items()
        parts = value.arguments if isinstance(value.arguments, tuple) else (value.arguments,)
        yield from (("", each) for each in (value.state, *parts))
    elif isinstance(value, Reference):
        yield "", value.identity


_WITH_PARTS = (dict, list, tuple, Made, Reference)


def _joined(path: str, key: Any) -> str:
    if len(path) > _LONGEST_PATH or key == "":
        return path
    told = key if isinstance(key, (str, int)) else "?"
    return f"{path}.{told}" if path else str(told)
