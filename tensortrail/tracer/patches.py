"""Wrappers put around functions and methods, and taken off again."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

_MISSING = object()
Around = Callable[..., Any]


class Patches:
    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any, Any]] = []

    def wrap(self, owner: Any, name: str, around: Around, everywhere: bool = False) -> None:
        """Calls of `owner.name` become `around(original, *args, **kwargs)`.

        `everywhere`: also where modules took the function by `from ... import`."""
        original = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return around(original, *args, **kwargs)

        self._set(owner, name, wrapped)
        if everywhere:
            for module in list(sys.modules.values()):
                namespace = getattr(module, "__dict__", None)
                if isinstance(namespace, dict) and module is not owner:
                    for key, value in list(namespace.items()):
                        if value is original:
                            self._set(module, key, wrapped)

    def _set(self, owner: Any, name: str, value: Any) -> None:
        # Class attributes that are inherited are taken away again, not set to the base's.
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self._undo.append((owner, name, before, value))

    def undo(self) -> None:
        for owner, name, before, ours in reversed(self._undo):
            if vars(owner).get(name) is not ours:
                continue  # somebody wrapped ours; without a recorder it only passes through
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._undo.clear()
