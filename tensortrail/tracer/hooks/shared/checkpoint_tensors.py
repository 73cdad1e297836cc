"""What is written and read together: the tensors in nested containers, with their keys, and
whether they are pieces of a checkpoint that was told as a whole."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import Module

from tensortrail.tracer.identity.module_tensors import owned
from tensortrail.tracer.identity.object_attributes import attributes_of

DEEPEST = 12
MOST_OBJECTS = 10_000
LONGEST = 20_000
"""Characters of a message that lists keys."""


class Within(threading.local):
    """Whether the running thread is in a checkpoint that was told as a whole: its pieces go
    through `torch.save` and `torch.load`."""

    depth = 0

    def around(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self.depth += 1
        try:
            return original(*args, **kwargs)
        finally:
            self.depth -= 1


WITHIN = Within()


def path_of(path: Any) -> str:
    try:
        return os.path.abspath(os.fsdecode(path)) if isinstance(path, (str, os.PathLike)) else ""
    except (TypeError, ValueError):
        return ""


def tensors_below(data: Any, *, in_objects: bool = False) -> Iterator[tuple[str, Any]]:
    """The tensors in nested plain containers and modules, with their dotted keys; those that other
    objects keep too, if that is asked for."""
    yield from _below(data, "", 0, set() if in_objects else None)


def _below(data: Any, key: str, depth: int, seen: set[int] | None) -> Iterator[tuple[str, Any]]:
    kind = type(data)  # `isinstance` asks an object for its class: a proxy would make its object
    if issubclass(kind, torch.Tensor):
        yield key, data
    elif depth > DEEPEST:
        return
    elif issubclass(kind, Module):
        yield from owned(data, key)
    else:
        for name, value in _held(data, kind, seen):
            yield from _below(value, f"{key}.{name}" if key else name, depth + 1, seen)


def empty_below(data: Any, key: str = "", depth: int = 0) -> Iterator[str]:
    """The dotted keys of empty dicts in nested plain ones."""
    for name, value in list(dict.items(data)) if issubclass(type(data), dict) else ():
        below = f"{key}.{name}" if key else str(name)
        if type(value) is dict and not value:
            yield below
        elif depth < DEEPEST:
            yield from empty_below(value, below, depth + 1)


def _held(data: Any, kind: type, seen: set[int] | None) -> Iterator[tuple[str, Any]]:
    if issubclass(kind, dict):
        yield from ((str(name), value) for name, value in list(dict.items(data)))
    elif kind in (list, tuple):
        yield from ((str(place), value) for place, value in enumerate(data))
    elif seen is not None and id(data) not in seen and len(seen) < MOST_OBJECTS:
        seen.add(id(data))
        yield from attributes_of(data)


def first_given(kwargs: dict[str, Any], *names: str) -> Any:
    return next((kwargs[name] for name in names if name in kwargs), None)
