"""torch.jit.trace names values by the variables of the frames it comes from: not by our frames."""

from __future__ import annotations

from typing import Any

import torch

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.mode_stack import stepped_aside
from tensortrail.tracer.patching.patches import Patches
from tensortrail.tracer.watching.mode import TrailMode

LIBRARY = "torch.jit"


def install(recorder: Recorder, patches: Patches) -> None:
    def tracing(original: Any, *args: Any, **kwargs: Any) -> Any:
        with stepped_aside(TrailMode):
            return original(*args, **kwargs)

    for ending in ("", "_with_dict"):
        patches.wrap(torch._C, f"_create_function_from_trace{ending}", tracing, at_any_time=True)
        patches.wrap(
            torch._C.ScriptModule, f"_create_method_from_trace{ending}", tracing, at_any_time=True
        )
    patches.wrap(torch._C, "_create_graph_by_tracing", tracing, at_any_time=True)
