"""accelerate writes models and states into folders."""

from __future__ import annotations

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.folder_writers import writes_folder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "accelerate.accelerator"


def install(recorder: Recorder, patches: Patches) -> None:
    from accelerate.accelerator import Accelerator

    if recorder.written is not None:
        for name, place in (("save_model", 2), ("save_state", 1)):
            patches.wrap(Accelerator, name, writes_folder(recorder, f"accelerate.{name}", place))
