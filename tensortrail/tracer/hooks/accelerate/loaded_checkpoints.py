"""`load_checkpoint_in_model` puts weights in one by one, and says nothing of those it has not."""

from __future__ import annotations

import os
import threading
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.given_keys import ended_with
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "accelerate.utils.modeling"
OP = "accelerate.load_checkpoint_in_model"


class Reading(threading.local):
    """The keys that the running load has read."""

    keys: set[str] | None = None


def install(recorder: Recorder, patches: Patches) -> None:
    import accelerate.utils.modeling as library

    reading = Reading()
    patches.wrap(library, "load_state_dict", _reading(reading))
    around = _loading(recorder, reading)
    patches.wrap(library, "load_checkpoint_in_model", around, everywhere=True)


def _reading(reading: Reading) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if reading.keys is not None and isinstance(result, dict):
            reading.keys.update(result)
        return result

    return around


def _loading(recorder: Recorder, reading: Reading) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        model = args[0] if args else kwargs.get("model")
        place = args[1] if len(args) > 1 else kwargs.get("checkpoint")
        reading.keys = set()
        try:
            result = original(*args, **kwargs)
            recorder.guarded(ended_with, OP, model, reading.keys, os.fspath(place or ""))
        finally:
            reading.keys = None
        return result

    return around
