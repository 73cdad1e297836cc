"""Compiled code is called without the mode.

Compiled code is guarded by the stack of modes: with ours on it, a function that was compiled
before the recording would be compiled again, and once more after it."""

from __future__ import annotations

from typing import Any

from tensortrail.tracer.late import LateHooks
from tensortrail.tracer.mode import TrailMode
from tensortrail.tracer.patches import Compiled, Patches, wrapper
from tensortrail.tracer.recorder import Recorder
from tensortrail.tracer.stack import ours, put_on, take_off

LIBRARY = "torch._dynamo.eval_frame"


def install(recorder: Recorder, patches: Patches) -> None:
    import torch._dynamo.eval_frame as frames

    original = frames.set_eval_frame
    stepping = _stepping(original, patches.compiled)
    for name in ("set_eval_frame", "_maybe_set_eval_frame"):
        if vars(frames).get(name) is original:
            patches.replace(frames, name, stepping)
    _leave_alone(stepping, recursive=False)
    _leave_alone(wrapper(len, len, patches.compiled, False), recursive=False)
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


def _stepping(original: Any, compiled: Compiled) -> Any:
    """Compiled code runs while `set_eval_frame` has a callback. Without one it is plain Python:
    between two calls, and in functions that the compiler is told to leave alone."""

    def set_eval_frame(callback: Any) -> Any:
        if callback is None:
            before = original(None)
            if before is not None and (depth := compiled.depth).within:
                depth.within -= 1
                if not depth.within and depth.mode is not None:
                    put_on(depth.mode, depth.below)
                    depth.mode = None
            return before
        depth = compiled.depth
        if depth.mode is None and (mode := ours(TrailMode)) is not None:
            depth.mode, depth.below = mode, take_off(mode)
        # From here on every new frame would be compiled.
        before = original(callback)
        if before is None:
            depth.within += 1
        return before

    return set_eval_frame
