"""Loads that say nothing of what they left are judged by the keys that they were given."""

from __future__ import annotations

import re
from collections.abc import Collection

from torch.nn import Module

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.noticing.incomplete_loads import Load

WRAPPERS = re.compile(r"^module\.|_fsdp_wrapped_module\.|_orig_mod\.|_checkpoint_wrapped_module\.")


def ended_with(
    recorder: Recorder, op: str, model: Module, keys: Collection[str], file: str
) -> None:
    """Names of weights are compared without those of wrappers, which keys may not have."""
    names = {WRAPPERS.sub("", name): name for name in _names(model)}
    plain = {WRAPPERS.sub("", key): key for key in keys}
    if not names.keys() & plain.keys():
        return
    for name, tensor in model.named_parameters(remove_duplicate=False):
        entry = recorder.storages.entry(tensor) if WRAPPERS.sub("", name) in plain else None
        if entry is not None and file:
            recorder.loads.gave(entry, file)
    recorder.name_module(model)
    missing = {name for key, name in names.items() if key not in plain}
    unused = {key for each, key in plain.items() if each not in names}
    recorder.incomplete_loads.ended(Load(op, model, missing, unused, file))


def _names(model: Module) -> list[str]:
    parameters = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    return parameters + [name for name, _ in model.named_buffers(remove_duplicate=False)]
