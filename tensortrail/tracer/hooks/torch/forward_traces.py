"""What `torch.autograd.detect_anomaly` shows of the forward call has no frames of ours."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from torch.fx import traceback as traces

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.unrecorded_frames import frames_without_us
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch.autograd"


def install(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(traces, "format_stack", _formatted)


def _formatted(original: Any) -> Any:
    if traces.should_preserve_node_meta:
        return original()
    frames = list(frames_without_us(sys._getframe()))
    shown = traceback.StackSummary.extract((each, each.f_lineno) for each in reversed(frames))
    return traceback.format_list(shown)
