"""diffusers does not move a group-offloaded model by `.to()`, and only a warning says so."""

from __future__ import annotations

from typing import Any

import torch

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.diffusers.group_offloading import GROUPED
from tensortrail.tracer.hooks.shared.refused_moves import note_refused, refusing
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "diffusers.models.modeling_utils"


def install(recorder: Recorder, patches: Patches) -> None:
    from diffusers.models.modeling_utils import ModelMixin

    patches.wrap(ModelMixin, "to", _moving(recorder))


def _moving(recorder: Recorder) -> Around:
    refused = refusing(recorder, "diffusers", lambda model: "quantized")

    def around(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        result = refused(original, model, *args, **kwargs)
        if _asks_device(args, kwargs):
            kind = _in_groups(model)
            recorder.guarded(note_refused, model, "diffusers", "to", lambda _: kind, "")
        return result

    return around


def _asks_device(args: Any, kwargs: Any) -> bool:
    given = (*args, kwargs.get("device"))
    return any(isinstance(each, (str, int, torch.device)) for each in given)


def _in_groups(model: Any) -> str:
    for module in model.modules():
        registry = vars(module).get("_diffusers_hook")
        if registry is not None and GROUPED in registry.hooks:
            return "offloaded in groups"
    return ""
