"""The line of a class that assigns an attribute tells where its value comes from."""

from __future__ import annotations

import inspect
import re
from typing import Any
from weakref import WeakKeyDictionary

OTHER = r"self\.\w+"
_KNOWN: WeakKeyDictionary[type, dict[str, tuple[str, int] | None]] = WeakKeyDictionary()
"""Source is read once for a class, however often its modules are moved."""


def assigned_at(owner: Any, name: str) -> tuple[str, int] | None:
    """File and line of the first `self.name = ...` in its class, or in one that it is derived
    from; None where there is no source, or no such line."""
    known = _KNOWN.setdefault(type(owner), {})
    if name not in known:
        known[name] = _found(type(owner), name)
    return known[name]


def _found(kind: type, name: str) -> tuple[str, int] | None:
    pattern = rf"\s*({OTHER}\s*,\s*)*self\.{name}\s*(,\s*{OTHER}\s*)*(:[^=]+)?=(?!=)"
    for cls in kind.__mro__:
        for method in filter(inspect.isfunction, vars(cls).values()):
            try:
                lines, first = inspect.getsourcelines(method)
            except (OSError, TypeError):
                continue
            for number, line in enumerate(lines, first):
                if re.match(pattern, line):
                    return method.__code__.co_filename, number
    return None
