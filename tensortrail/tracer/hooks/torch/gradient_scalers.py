"""A gradient scaler refuses to step an optimizer whose weights have no gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch._C import DisableTorchFunction

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch"
MOST = 50


def install(recorder: Recorder, patches: Patches) -> None:
    def stepping(original: Any, scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(scaler, optimizer, *args, **kwargs)
        except AssertionError:
            recorder.guarded(_refused, optimizer)
            raise

    patches.wrap(torch.amp.GradScaler, "step", stepping)


def _refused(recorder: Recorder, optimizer: Any) -> None:
    """Noted where none of its weights has a gradient: another cause is not known here."""
    weights = [each for group in optimizer.param_groups for each in group["params"]]
    with DisableTorchFunction():
        if any(each.grad is not None for each in weights):
            return
    entries = [recorder.storages.entry(each) for each in weights[:MOST]]
    facts = {
        "scaled without": [each.number for each in entries if each is not None],
        "count": len(weights),
        "optimizer": type(optimizer).__name__,
        "cuts": recorder.cut_graphs.cuts_off([id(each) for each in weights]),
        "frozen": recorder.cut_graphs.frozen_by(weights),
    }
    recorder.note(Did.HOOK, entries[0] if entries else None, op="GradScaler.step", facts=facts)
