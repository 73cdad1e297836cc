"""Functions that write a whole folder: what they wrote is judged as one."""

from __future__ import annotations

from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.checkpoint_tensors import path_of
from tensortrail.tracer.noticing.written_checkpoints import writing
from tensortrail.tracer.patching.patches import Around

_NAMES = ("save_directory", "output_dir")


def writes_folder(recorder: Recorder, op: str, place: int) -> Around:
    """`place`: where the call takes the folder without its name, the object itself counted."""

    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        named = next((kwargs[name] for name in _NAMES if name in kwargs), None)
        folder = args[place] if len(args) > place else named
        with writing(recorder, path_of(folder), op):
            return original(*args, **kwargs)

    return around
