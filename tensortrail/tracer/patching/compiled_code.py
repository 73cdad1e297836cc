"""Compiled code is called without our modes.

It is guarded by the stack of modes: with one of ours on the stack, a function that was compiled
before would be compiled again, and once more without it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch._guards import CompileContext
from torch.overrides import TorchFunctionMode

from tensortrail.tracer.patching.mode_stack import ours, put_on, take_off
from tensortrail.tracer.patching.patches import Compiled


def stepping(
    original: Any,
    compiled: Compiled,
    kind: type[TorchFunctionMode],
    begins: Callable[[], None] = lambda: None,
    ends: Callable[[], None] = lambda: None,
) -> Any:
    """`set_eval_frame`, which takes the mode of this kind off and puts it on again.

    Compiled code runs while `set_eval_frame` has a callback. Without one it is plain Python:
    between two calls, and in functions that the compiler is told to leave alone."""

    def set_eval_frame(callback: Any) -> Any:
        if callback is None:
            before = original(None)
            depth = compiled.depth
            if depth.within and (before is not None or _compiler_gave_up()):
                depth.within -= 1
                if not depth.within and depth.mode is not None:
                    put_on(depth.mode, depth.below)
                    depth.mode = None
                    ends()
            return before
        depth = compiled.depth
        if depth.mode is None and (mode := ours(kind)) is not None:
            depth.mode, depth.below = mode, take_off(mode)
            begins()
        # From here on every new frame would be compiled.
        before = original(callback)
        if before is None:
            depth.within += 1
        return before

    return set_eval_frame


def _compiler_gave_up() -> bool:
    """A compiler that fails forgets its callback; while it works it has none either."""
    frame: Any = sys._getframe(2)
    while frame.f_code.co_name == "set_eval_frame":  # one of ours around another
        frame = frame.f_back
    return frame.f_code.co_name == "compile_wrapper" and CompileContext.try_get() is None


def leave_alone(function: Any, recursive: bool = True) -> None:
    """The compiler shall not compile this function of ours, wherever it is called."""
    from torch._dynamo import eval_frame

    if recursive and hasattr(eval_frame, "set_code_exec_strategy"):
        skip = eval_frame.FrameAction.SKIP
        strategy = eval_frame.FrameExecStrategy(skip, skip)
        eval_frame.set_code_exec_strategy(function.__code__, strategy)
    else:
        eval_frame.skip_code(function.__code__)
