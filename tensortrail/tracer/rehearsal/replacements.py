"""Functions are replaced while a rehearsal is on, and put back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MISSING = object()


class Replacements:
    """Attributes of modules and classes, entries of dictionaries, elements of sets."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, Any, Any]] = []

    def put(self, owner: Any, name: Any, value: Any) -> None:
        self._before.append((owner, name, _items(owner).get(name, _MISSING)))
        _set(owner, name, value)

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """What was there, and what is there instead."""
        for owner, name, before in self._before:
            if before is not _MISSING:
                yield before, _items(owner)[name]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """For a while all is as it was."""
        ours = [(owner, name, _items(owner)[name]) for owner, name, _ in self._before]
        self.undo()
        try:
            yield
        finally:
            for each in ours:
                self.put(*each)

    def undo(self) -> None:
        while self._before:
            _set(*self._before.pop())


def _items(owner: Any) -> Any:
    if isinstance(owner, set):
        return dict.fromkeys(owner)
    return owner if isinstance(owner, dict) else vars(owner)


def _set(owner: Any, name: Any, value: Any) -> None:
    there = value is not _MISSING
    if isinstance(owner, set):
        (owner.add if there else owner.discard)(name)
    elif isinstance(owner, dict) and there:
        owner[name] = value
    elif isinstance(owner, dict):
        owner.pop(name, None)
    elif there:
        setattr(owner, name, value)
    else:
        delattr(owner, name)
