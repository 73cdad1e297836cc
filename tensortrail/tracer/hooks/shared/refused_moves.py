"""Libraries refuse to move models whose place is their hooks' business."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Around

MOST_PARTS = 20
ENTIRE = "accelerate.CpuOffload"
HOOKS = "accelerate/hooks.py"


def moved_by_hand(recorder: Recorder, module: Module) -> dict[str, Any]:
    """What a move of this module did to hooks that count on another place; nothing mostly."""
    onloads = recorder.onload_hooks
    away = onloads.away(module)
    if away:
        return {"away": away[:MOST_PARTS], "parts": len(away)}
    brought = [
        (path or type(each).__name__, bringer.device)
        for path, each, bringer in onloads.hooks(module)
        if bringer.hook == ENTIRE and onloads.lies_on(each, bringer.device)
    ]
    return {"brought": brought[:MOST_PARTS]} if brought and not _by_a_hook() else {}


def _by_a_hook() -> bool:
    """The hook itself moves it, in compiled code, where its method is no longer wrapped."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.replace("\\", "/").endswith(HOOKS):
            return True
        frame = frame.f_back
    return False


def refusing(recorder: Recorder, owner: str, why: Callable[[Any], str]) -> Around:
    """Around a method that moves a model, and may refuse to: `why` says what the model is, ""
    if nothing speaks against moving it."""

    def around(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(model, *args, **kwargs)
        except (RuntimeError, ValueError) as error:
            recorder.guarded(note_refused, model, owner, original.__name__, why, str(error))
            raise

    return around


def note_refused(
    recorder: Recorder, model: Any, owner: str, how: str, why: Callable[[Any], str], message: str
) -> None:
    if kind := why(model):
        facts = {
            "said": f"{type(model).__name__}.{how} was refused",
            "model": type(model).__name__,
            "refused": message[:500],
            "kind": kind,
        }
        recorder.note(Did.HOOK, op=f"{owner}.{how}", facts=facts)
