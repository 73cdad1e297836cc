"""torch has helpers that gather and spread the state of sharded models and optimizers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch.nn import Module

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.checkpoint_tensors import tensors_below
from tensortrail.tracer.hooks.shared.given_keys import ended_with
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "torch.distributed.checkpoint.state_dict"
WHAT = ("model_state_dict", "optimizer_state_dict", "state_dict")


def install(recorder: Recorder, patches: Patches) -> None:
    from torch.distributed.checkpoint import state_dict

    for what in WHAT:
        around = _around(recorder, "state dict gathered", True)
        patches.wrap(state_dict, f"get_{what}", around, everywhere=True)
        around = _around(recorder, "state dict spread", False)
        patches.wrap(state_dict, f"set_{what}", around, everywhere=True)


def _around(recorder: Recorder, phase: str, gathers: bool) -> Around:
    def around(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.guarded(_name, model)
        given = args[0] if args else kwargs.get("model_state_dict")
        keys = tuple(given) if isinstance(given, Mapping) and not gathers else ()
        with recorder.phases.within(phase):
            result = original(model, *args, **kwargs)
            # Another tensor may be the parameter now; what was gathered has no name yet.
            recorder.guarded(_name, result if gathers else model)
        if keys:
            recorder.guarded(_given, model, given, keys)
        return result

    return around


def _given(recorder: Recorder, model: Any, given: Any, keys: Collection[str]) -> None:
    """torch puts what the model has into what was given, and loads that."""
    if isinstance(model, Module):
        file = recorder.loads.file_of(given[key] for key in keys if key in given)
        ended_with(recorder, "set_model_state_dict", model, keys, file)


def _name(recorder: Recorder, data: Any) -> None:
    if isinstance(data, Module):
        recorder.name_module(data)
        return
    if isinstance(data, tuple):  # the model's and the optimizer's
        for each in data:
            _name(recorder, each)
        return
    for key, tensor in tensors_below(data):
        entry = recorder.storages.entry(tensor)
        if entry is not None and not entry.name:
            recorder.storages.name(entry, key)
