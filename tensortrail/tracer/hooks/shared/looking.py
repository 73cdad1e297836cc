"""Hooks that only look: at what a function is given, or at what it gave.

`Patches.wrap` calls them only while a recording is on, and nothing they do reaches the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Around

Look = Callable[..., Any]


def looking_before(recorder: Recorder, look: Look) -> Around:
    """`look(recorder, *args, **kwargs)` comes before the call."""

    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.guarded(look, *args, **kwargs)
        return original(*args, **kwargs)

    return around


def looking_after(recorder: Recorder, look: Look) -> Around:
    """`look(recorder, result, *args, **kwargs)` comes after the call."""

    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if recorder.active:  # the call may have ended the recording
            recorder.guarded(look, result, *args, **kwargs)
        return result

    return around
