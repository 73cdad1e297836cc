"""Compiled code is called without the mode.

Compiled code is guarded by the stack of modes: with ours on it, a function that was compiled
before the recording would be compiled again, and once more after it."""

from __future__ import annotations

import threading
from typing import Any

from tensortrail.tracer.late import LateHooks
from tensortrail.tracer.mode import TrailMode
from tensortrail.tracer.patches import Around, Compiled, Patches
from tensortrail.tracer.recorder import Recorder
from tensortrail.tracer.stack import ours, put_on, take_off

LIBRARY = "torch._dynamo.eval_frame"


class Aside(threading.local):
    """The mode of this thread while it is in compiled code, and the number of those below it."""

    mode: TrailMode | None = None
    below = 0


def install(recorder: Recorder, patches: Patches) -> None:
    import torch._dynamo.eval_frame as frames

    stepping = _stepping(patches.compiled, Aside())
    for name in ("set_eval_frame", "_maybe_set_eval_frame"):
        if wrapped := patches.wrap(frames, name, stepping, always=True):
            _leave_alone(wrapped, recursive=False)  # the code of all that is wrapped
    _leave_alone(stepping, recursive=False)
    _leave_alone(LateHooks.find_spec)


def _leave_alone(function: Any, recursive: bool = True) -> None:
    """The compiler shall not compile this function of ours, wherever it is called."""
    from torch._dynamo import eval_frame

    if recursive and hasattr(eval_frame, "set_code_exec_strategy"):
        skip = eval_frame.FrameAction.SKIP
        strategy = eval_frame.FrameExecStrategy(skip, skip)
        eval_frame.set_code_exec_strategy(function.__code__, strategy)
    else:
        eval_frame.skip_code(function.__code__)


def _stepping(compiled: Compiled, aside: Aside) -> Around:
    """Compiled code runs while `set_eval_frame` has a callback. Without one it is plain Python:
    between two calls, and in functions that the compiler is told to leave alone."""

    def around(original: Any, callback: Any) -> Any:
        if callback is None:
            before = original(None)
            if before is not None and compiled.depth:
                compiled.depth -= 1
                if not compiled.depth and aside.mode is not None:
                    put_on(aside.mode, aside.below)
                    aside.mode = None
            return before
        if aside.mode is None and (mode := ours(TrailMode)) is not None:
            aside.mode, aside.below = mode, take_off(mode)
        # From here on every new frame would be compiled.
        before = original(callback)
        if before is None:
            compiled.depth += 1
        return before

    return around
