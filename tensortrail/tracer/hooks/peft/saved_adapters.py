"""peft writes adapters into folders."""

from __future__ import annotations

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.folder_writers import writes_folder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "peft.peft_model"


def install(recorder: Recorder, patches: Patches) -> None:
    from peft.peft_model import PeftModel

    if recorder.written is not None:
        around = writes_folder(recorder, "peft.save_pretrained", 1)
        patches.wrap(PeftModel, "save_pretrained", around)
