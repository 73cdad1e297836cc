"""Torch may choose another computation because a function mode is on; here it does not.

`nn.MultiheadAttention` and the transformer layers leave their fast path, with other results in
the last bits, if `torch.overrides.has_torch_function` says so. The recording's mode must not
count."""

from __future__ import annotations

from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.mode_stack import stepped_aside
from tensortrail.tracer.patching.patches import Patches
from tensortrail.tracer.watching.mode import TrailMode

LIBRARY = "torch.overrides"


def install(recorder: Recorder, patches: Patches) -> None:
    import torch.overrides

    def asking(original: Any, operands: Any) -> Any:
        with stepped_aside(TrailMode):
            return original(operands)

    patches.wrap(torch.overrides, "has_torch_function", asking, at_any_time=True)
