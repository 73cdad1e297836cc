"""Batches: tensors that a DataLoader gives are made in C++ or in another process."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils.data import dataloader

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.checkpoint_tensors import tensors_below
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch"
MOST_TENSORS = 64
"""Of one batch."""


def install(recorder: Recorder, patches: Patches) -> None:
    numbers = itertools.count(1)

    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        batch = original(*args, **kwargs)
        if recorder.active:
            recorder.guarded(_given, batch, next(numbers))
        return batch

    patches.wrap(dataloader._BaseDataLoaderIter, "__next__", around)


def _given(recorder: Recorder, batch: Any, number: int) -> None:
    facts = {"batch": number, "form": _form(batch)}
    for part, (path, tensor) in enumerate(tensors_below(batch, in_objects=True)):
        if part >= MOST_TENSORS:
            return
        entry = recorder.storages.entry(tensor)
        if entry is not None and not entry.name:
            recorder.note(Did.CREATE, entry, op="DataLoader", facts={**facts, "part": path})


def _form(batch: Any) -> str:
    """What one line can move: a tensor, or a dict or sequence of nothing but tensors."""
    if isinstance(batch, torch.Tensor):
        return "tensor"
    if type(batch) is dict:
        return "dict" if _all_tensors(batch.values()) else "nested"
    if type(batch) in (list, tuple):
        return "sequence" if _all_tensors(batch) else "nested"
    return "nested"


def _all_tensors(values: Iterable[Any]) -> bool:
    return all(isinstance(each, torch.Tensor) for each in values)
