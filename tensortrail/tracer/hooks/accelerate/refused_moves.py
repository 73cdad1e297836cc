"""accelerate warns when somebody moves a model that may not be moved any more."""

from __future__ import annotations

import sys
from typing import Any

from torch.nn import Module

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.refused_moves import note_refused
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "accelerate.big_modeling"
SAYS = "You shouldn't move a model that is dispatched"
REFUSES = "You can't move a model that has some modules offloaded to cpu or disk."


def install(recorder: Recorder, patches: Patches) -> None:
    import accelerate.big_modeling as library

    # The functions that say so are made for each model, so the one they all call is watched.
    patches.wrap(library.logger, "warning", _warning(recorder))


def _warning(recorder: Recorder) -> Around:
    def around(original: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(message, str) and message.startswith(SAYS):
            recorder.guarded(_asked, sys._getframe(2))
        # The line that warned is two of our frames further out.
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 2
        return original(message, *args, **kwargs)

    return around


def _asked(recorder: Recorder, frame: Any) -> None:
    """The frame is that of the function in place of the model's `to`."""
    model, how = frame.f_locals.get("model"), frame.f_locals.get("fn")
    if isinstance(model, Module) and any(each.is_meta for each in model.parameters()):
        name = getattr(how, "__name__", "to")
        note_refused(recorder, model, "accelerate", name, lambda _: "dispatched", REFUSES)
