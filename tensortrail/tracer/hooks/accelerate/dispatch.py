"""accelerate has functions that spread a model over devices and put its hooks on."""

from __future__ import annotations

import inspect
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.placed_models import note_placement
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "accelerate.big_modeling"
SPREAD = ("cpu_offload", "disk_offload", "cpu_offload_with_hook", "dispatch_model",
          "load_checkpoint_and_dispatch")  # fmt: skip


def install(recorder: Recorder, patches: Patches) -> None:
    import accelerate.big_modeling as library

    for name in SPREAD:
        patches.wrap(library, name, _spreading(recorder, name), everywhere=True)


def _spreading(recorder: Recorder, name: str) -> Around:
    def around(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        onloads = recorder.onload_hooks
        with recorder.phases.within(name), onloads.within(model), onloads.spreading() as outermost:
            result = original(model, *args, **kwargs)
        if outermost:
            recorder.guarded(_placed, original, name, model, args, kwargs)
        return result

    return around


def _placed(
    recorder: Recorder, original: Any, name: str, model: Any, args: Any, kwargs: Any
) -> None:
    given = inspect.signature(original).bind(model, *args, **kwargs).arguments
    if (declared := given.get("device_map")) is not None:
        note_placement(recorder, model, declared, None, f"accelerate.{name}")
