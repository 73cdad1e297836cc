"""Looking at the first argument of a call, and else leaving the call alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.compiler import is_compiling

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Around

Look = Callable[[Recorder, Any], Any]


def looking_before(recorder: Recorder, look: Look) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        if args and recorder.active and not is_compiling():
            recorder.guarded(look, args[0])
        return original(*args, **kwargs)

    return around


def looking_after(recorder: Recorder, look: Look) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if args and recorder.active and not is_compiling():
            recorder.guarded(look, args[0])
        return result

    return around
