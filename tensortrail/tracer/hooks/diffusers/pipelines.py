"""Offloading a whole pipeline of diffusers is a phase; some pipelines may not be moved."""

from __future__ import annotations

from typing import Any

from torch.nn import Module

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.refused_moves import refusing
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "diffusers.pipelines.pipeline_utils"
OFFLOADS = ("enable_model_cpu_offload", "enable_sequential_cpu_offload", "enable_group_offload")


def install(recorder: Recorder, patches: Patches) -> None:
    from diffusers.pipelines.pipeline_utils import DiffusionPipeline

    for name in OFFLOADS:
        patches.wrap(DiffusionPipeline, name, _offloading(recorder, name))
    patches.wrap(DiffusionPipeline, "to", refusing(recorder, "diffusers", _kind))


def _offloading(recorder: Recorder, name: str) -> Around:
    def around(original: Any, pipeline: Any, *args: Any, **kwargs: Any) -> Any:
        with recorder.phases.within(name):
            recorder.guarded(lambda _: _named(recorder, pipeline))
            return original(pipeline, *args, **kwargs)

    return around


def _named(recorder: Recorder, pipeline: Any) -> None:
    for name, part in pipeline.components.items():
        if isinstance(part, Module):
            recorder.models.call(part, name)
            recorder.name_module(part, name)


def _kind(pipeline: Any) -> str:
    hooked = any(hasattr(each, "_hf_hook") for each in pipeline.components.values())
    mapped = getattr(pipeline, "hf_device_map", None) is not None
    return "offloaded" if hooked else "dispatched" if mapped else ""
