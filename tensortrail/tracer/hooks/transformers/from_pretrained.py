"""`from_pretrained` is asked for a device map; this notes it, and where the weights are then."""

from __future__ import annotations

import threading
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.placed_models import note_placement
from tensortrail.tracer.hooks.shared.refused_moves import refusing
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "transformers.modeling_utils"
OP = "transformers.from_pretrained"


class Loading(threading.local):
    """Loads that are under way in a thread: models may load others as their parts."""

    def __init__(self) -> None:
        self.chosen: list[Any] = []
        """The device map that the library made of the declared one."""


def install(recorder: Recorder, patches: Patches) -> None:
    import transformers.modeling_utils as library

    loading = Loading()
    patches.wrap(library, "_get_device_map", _choosing(loading))
    around = _loading(recorder, loading)
    patches.wrap(library.PreTrainedModel, "from_pretrained", around)
    for name in ("to", "cuda"):
        moving = refusing(recorder, "transformers", _kind)
        patches.wrap(library.PreTrainedModel, name, moving)


def _choosing(loading: Loading) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        chosen = original(*args, **kwargs)
        if loading.chosen:
            loading.chosen[-1] = chosen
        return chosen

    return around


def _loading(recorder: Recorder, loading: Loading) -> Around:
    def around(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        declared = kwargs.get("device_map")
        if declared is None:
            return original(cls, *args, **kwargs)
        loading.chosen.append(None)
        try:
            with (
                recorder.phases.within("load", {"class": cls.__name__}),
                recorder.onload_hooks.spreading() as outermost,
            ):
                loaded = original(cls, *args, **kwargs)
            if outermost:
                model = loaded[0] if isinstance(loaded, tuple) else loaded
                recorder.guarded(note_placement, model, declared, loading.chosen[-1], OP)
            return loaded
        finally:
            loading.chosen.pop()

    return around


def _kind(model: Any) -> str:
    method = getattr(model, "quantization_method", None)
    return f"quantized ({getattr(method, 'value', method)})" if method is not None else ""
