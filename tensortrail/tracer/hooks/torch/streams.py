"""No mode sees streams, events, or waiting for a device."""

from __future__ import annotations

from typing import Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.looking import looking_after
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "torch"
WAITS = {
    "Stream": ("synchronize", "wait_stream", "wait_event", "record_event"),
    "Event": ("record", "synchronize", "wait"),
}
MOST_AT_A_LINE = 3


def install(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(torch.cuda, "synchronize", _waiting(recorder, "torch.cuda.synchronize"))
    if accelerator := getattr(torch, "accelerator", None):
        around = _waiting(recorder, "torch.accelerator.synchronize")
        patches.wrap(accelerator, "synchronize", around)
    for kind, methods in WAITS.items():
        owner = getattr(torch.cuda, kind)
        for method in methods:
            patches.wrap(owner, method, _waiting(recorder, f"torch.cuda.{kind}.{method}"))


def _waiting(recorder: Recorder, op: str) -> Around:
    def waited(recorder: Recorder, *_: Any, **__: Any) -> None:
        if not recorder.often(Did.SYNC, op, MOST_AT_A_LINE):
            recorder.note(Did.SYNC, op=op)

    return looking_after(recorder, waited)
