"""`copy.copy` of a module makes another one with the same weights."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.looking import looking_after
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch"
OP = "copy.copy"
MOST_WEIGHTS, MOST_FRAMES = 200, 12


def install(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(Module, "__setstate__", looking_after(recorder, _restored))


def _restored(recorder: Recorder, _: Any, module: Module, *__: Any) -> None:
    if not _is_shallow(sys._getframe(1)):
        return
    for weight in list(module.parameters())[:MOST_WEIGHTS]:
        entry = recorder.storages.entry(weight)
        if entry is not None:
            facts = {"said": "shared with the copy", "shallow": type(module).__name__}
            recorder.note(Did.HOOK, entry, op=OP, facts=facts)


def _is_shallow(frame: FrameType | None) -> bool:
    """`copy` restores the module, and not as a deep copy."""
    for _ in range(MOST_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name == "_reconstruct" and frame.f_globals.get("__name__") == "copy":
            return not frame.f_locals.get("deep")
        frame = frame.f_back
    return False
