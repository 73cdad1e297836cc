"""Attributes replaced while a rehearsal is on, and put back as they were."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Replacements:
    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        self._before.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def undo(self) -> None:
        while self._before:
            owner, name, before = self._before.pop()
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
