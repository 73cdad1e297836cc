"""Torch's own `TestCase` looks for modes that a test left on; the recording's mode must not count.

Tests whose `setUp` does not call torch's are compared with what the class says."""

from __future__ import annotations

import torch

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch.testing._internal.common_utils"
EXPECTED = "_prev_torch_function_mode_stack_len"


def install(recorder: Recorder, patches: Patches) -> None:
    from torch.testing._internal.common_utils import TestCase

    if EXPECTED in vars(TestCase):
        ours = 0 if recorder.of_thread.mode is not None else 1 + (recorder.stage is not None)
        patches.replace(TestCase, EXPECTED, torch._C._len_torch_function_stack() + ours)
