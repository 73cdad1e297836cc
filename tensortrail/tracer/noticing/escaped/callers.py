"""What the program's functions that an exception left call a value."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

from tensortrail.tracer.identity.model_names import OF_METHODS
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.identity.variables import variables


def variable_for(frames: Sequence[FrameType], value: Any) -> str:
    """The innermost function's comes first; "" if none has a name for it. `self` is no name."""
    for frame in reversed(frames):
        if OWNERS[frame.f_code.co_filename] == USER:
            own = {**frame.f_globals, **variables(frame)}
            name = next((name for name, each in own.items() if each is value), "")
            if name and name not in OF_METHODS:
                return name
    return ""
