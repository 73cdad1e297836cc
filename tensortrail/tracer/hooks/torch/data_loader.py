"""Batches: tensors that a DataLoader gives are made in C++ or in another process."""

from __future__ import annotations

from typing import Any

from torch.utils.data import dataloader

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.torch.save_and_load import tensors_below
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch"
MOST_TENSORS = 64
"""Of one batch."""


def install(recorder: Recorder, patches: Patches) -> None:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        batch = original(*args, **kwargs)
        if recorder.active:
            recorder.guarded(_given, batch)
        return batch

    patches.wrap(dataloader._BaseDataLoaderIter, "__next__", around)


def _given(recorder: Recorder, batch: Any) -> None:
    for number, (_, tensor) in enumerate(tensors_below(batch)):
        if number >= MOST_TENSORS:
            return
        entry = recorder.storages.entry(tensor)
        if entry is not None and not entry.name:
            recorder.note(Did.CREATE, entry, op="DataLoader")
