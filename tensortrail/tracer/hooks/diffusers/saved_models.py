"""diffusers writes models and pipelines into folders."""

from __future__ import annotations

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.folder_writers import writes_folder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "diffusers.pipelines.pipeline_utils"


def install(recorder: Recorder, patches: Patches) -> None:
    from diffusers.models.modeling_utils import ModelMixin
    from diffusers.pipelines.pipeline_utils import DiffusionPipeline

    if recorder.written is not None:
        for kind in (ModelMixin, DiffusionPipeline):
            around = writes_folder(recorder, "diffusers.save_pretrained", 1)
            patches.wrap(kind, "save_pretrained", around)
