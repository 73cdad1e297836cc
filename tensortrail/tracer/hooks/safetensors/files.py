"""safetensors writes and reads in Rust, which no mode sees."""

from __future__ import annotations

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.torch.loads import loading
from tensortrail.tracer.hooks.torch.saves import saving
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "safetensors.torch"


def install(recorder: Recorder, patches: Patches) -> None:
    import safetensors.torch as library

    for name in ("save_file", "save_model"):
        patches.wrap(library, name, saving(recorder, f"safetensors.{name}"), everywhere=True)
    patches.wrap(library, "load_file", loading(recorder, "safetensors.load_file"), everywhere=True)
