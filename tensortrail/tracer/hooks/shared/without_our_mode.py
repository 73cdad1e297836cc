"""A call of torch's own, made as if the recording's mode were off."""

from __future__ import annotations

from typing import Any

from tensortrail.tracer.patching.mode_stack import stepped_aside
from tensortrail.tracer.watching.mode import TrailMode


def without_our_mode(original: Any, *args: Any, **kwargs: Any) -> Any:
    with stepped_aside(TrailMode):
        return original(*args, **kwargs)
