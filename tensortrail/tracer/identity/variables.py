"""The variables of a frame are read, and nothing of them is kept alive by that."""

from __future__ import annotations

import inspect
import sys
from types import FrameType
from typing import Any

_OPTIMIZED = inspect.CO_OPTIMIZED
_HELD_BY_FRAME = 3
"""References to a snapshot that only its frame has, as `getrefcount` counts from here."""


def variables(frame: FrameType) -> dict[str, Any]:
    """A copy of `frame.f_locals`.

    Before Python 3.13 the frame of a function keeps a snapshot of its variables once somebody
    asked, and so every tensor in them: it is emptied, unless the program asked itself."""
    shown = frame.f_locals
    found = dict(shown)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & _OPTIMIZED:
        if sys.getrefcount(shown) <= _HELD_BY_FRAME:
            shown.clear()
    return found
