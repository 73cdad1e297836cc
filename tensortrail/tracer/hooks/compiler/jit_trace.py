"""torch.jit.trace names values by the variables of the frames it comes from: not by our frames."""

from __future__ import annotations

import torch

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.without_our_mode import without_our_mode
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch.jit"


def install(recorder: Recorder, patches: Patches) -> None:
    traced = [(torch._C, "_create_graph_by_tracing")]
    for ending in ("", "_with_dict"):
        traced.append((torch._C, f"_create_function_from_trace{ending}"))
        traced.append((torch._C.ScriptModule, f"_create_method_from_trace{ending}"))
    for owner, name in traced:
        patches.wrap(owner, name, without_our_mode, at_any_time=True)
