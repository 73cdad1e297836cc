"""Compiled code is called without the mode."""

from __future__ import annotations

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.torch.warning_lines import ASKED
from tensortrail.tracer.patching.compiled_code import leave_alone, stepping
from tensortrail.tracer.patching.late_imports import LateHooks
from tensortrail.tracer.patching.patches import Patches, wrapper
from tensortrail.tracer.watching.mode import TrailMode

LIBRARY = "torch._dynamo.eval_frame"


def install(recorder: Recorder, patches: Patches) -> None:
    import torch._dynamo.eval_frame as frames

    original = frames.set_eval_frame
    stepper = stepping(original, patches.compiled, TrailMode)
    for name in ("set_eval_frame", "_maybe_set_eval_frame"):
        if vars(frames).get(name) is original:
            patches.replace(frames, name, stepper)
    leave_alone(stepper, recursive=False)
    leave_alone(wrapper(len, len, patches.compiled, False), recursive=False)
    leave_alone(LateHooks.find_spec)
    for asked in ASKED:
        leave_alone(asked)
