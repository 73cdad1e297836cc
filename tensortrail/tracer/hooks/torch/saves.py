"""torch.save writes tensors; this notes which, and into which file."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import torch
from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import MayStop, Recorder
from tensortrail.tracer.hooks.shared.checkpoint_tensors import (
    LONGEST,
    WITHIN,
    first_given,
    path_of,
    tensors_below,
)
from tensortrail.tracer.hooks.shared.safe_saves import saves_only_plain
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.noticing.written_checkpoints import writing
from tensortrail.tracer.patching.mode_stack import stepped_aside
from tensortrail.tracer.patching.patches import Around, Patches
from tensortrail.tracer.watching.mode import TrailMode

LIBRARY = "torch"
MOST_TENSORS, MOST_TOLD = 100_000, 50
HOLDERS = (torch.Tensor, dict, list, tuple, set)
"""What every loader knows, or what is in them is told by itself."""


def install(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(torch, "save", saving(recorder, "torch.save"), everywhere=True)


def saving(recorder: Recorder, op: str, what: int = 0, where: int = 1) -> Around:
    """Around a writer whose argument `what` holds the tensors and `where` names the file."""

    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        data = args[what] if len(args) > what else first_given(kwargs, "obj", "tensors", "model")
        path = args[where] if len(args) > where else first_given(kwargs, "f", "filename")

        def write() -> Any:
            plain = op == "torch.save" and recorder.guarded(
                saves_only_plain, data, path, args, kwargs
            )
            with stepped_aside(TrailMode) if plain else nullcontext():
                return original(*args, **kwargs)

        if WITHIN.depth:
            return write()
        with recorder.phases.within("checkpoint"), writing(recorder, path_of(path), op):
            empty = recorder.guarded(note_saved, data, path, op)
            if recorder.may_stop is not None and op == "torch.save":
                _ask(recorder, recorder.may_stop, path_of(path), bool(empty))
            try:
                return write()
            except (RuntimeError, ValueError) as error:
                recorder.guarded(_refused, data, path, op, error)
                raise

    return around


def _refused(recorder: Recorder, data: Any, path: Any, op: str, error: Exception) -> None:
    facts = {
        "save refused": str(error)[:LONGEST],
        "path": path_of(path),
        "views": list(itertools.islice(_views(data), MOST_TOLD)),
    }
    recorder.note(Did.HOOK, op=op, facts=facts)


def _views(data: Any) -> Iterator[str]:
    """The keys of plain tensors whose elements are not one block in their order."""
    for key, tensor in tensors_below(data):
        if type(tensor) in PLAIN and not tensor.is_contiguous():
            yield key


def _ask(recorder: Recorder, stop: MayStop, place: str, empty: bool) -> None:
    """`torch.save` truncates the file before it writes."""
    if place in recorder.mapped:
        stop.ask("STO206")
    if empty and os.path.exists(place):
        stop.ask("SHD405", "hook")


def note_saved(recorder: Recorder, data: Any, path: Any, op: str) -> int:
    """Say what a writer gets, before it writes: it may not come back. Gives how many of the
    tensors have no data."""
    place = path_of(path)
    seen = empty = 0
    site = recorder.site_here()
    for key, tensor in tensors_below(data, in_objects=True):
        entry = recorder.storages.entry(tensor)
        if entry is None or (seen := seen + 1) > MOST_TENSORS:
            continue
        if entry.name and recorder.fresh_memory.is_fresh(entry):
            recorder.fresh_memory.read(entry, op)
        if isinstance(data, (dict, Module)) and not entry.name:
            recorder.storages.name(entry, key)
        with torch._C.DisableTorchFunction():
            logical = tensor.numel() * tensor.element_size()
        facts = {"path": place, "key": key, "logical": logical}
        facts["device"] = entry.device
        empty += entry.device == "meta"
        recorder.note(Did.SAVE, entry, op=op, facts=facts, site=site)
    facts = {"path": place, "count": seen, "objects": objects_in(data)}
    recorder.note(Did.SAVE, op=op, facts=facts)
    recorder.writer.flush()
    return empty


def objects_in(data: Any) -> dict[str, str]:
    """Which classes of its own a file gets, each with the key it lies under."""
    each = dict.items(data) if issubclass(type(data), dict) else [("", data)]
    kinds = ((type(value), key) for key, value in each if not issubclass(type(value), HOLDERS))
    own = ((kind, key) for kind, key in kinds if kind.__module__ != "builtins")
    return {f"{kind.__module__}.{kind.__qualname__}": str(key) for kind, key in own}
