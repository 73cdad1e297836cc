"""torch.load reads tensors; this notes which, from which file, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.checkpoint_tensors import (
    LONGEST,
    WITHIN,
    first_given,
    path_of,
    tensors_below,
)
from tensortrail.tracer.hooks.shared.safe_loads import runs_only_torch, with_modes_aside
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "torch"
NO_DEVICE = "Attempting to deserialize object on"


def install(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(torch, "load", loading(recorder, "torch.load"), everywhere=True)


def loading(recorder: Recorder, op: str) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        def read() -> Any:
            if op == "torch.load" and runs_only_torch(recorder, args, kwargs):
                return with_modes_aside(recorder, original, *args, **kwargs)
            return original(*args, **kwargs)

        if WITHIN.depth:
            return read()
        with recorder.phases.within("load"):
            try:
                result = read()
            except (RuntimeError, pickle.UnpicklingError) as error:
                recorder.guarded(_load_refused, args, kwargs, op, error)
                raise
            path = args[0] if args else first_given(kwargs, "f", "filename")
            mapped = bool(kwargs.get("mmap")) or op.startswith("safetensors")
            recorder.guarded(note_loaded, result, path, op, mapped)
            return result

    return around


def _load_refused(recorder: Recorder, args: Any, kwargs: Any, op: str, error: Exception) -> None:
    """Tensors were to go to a device that is not there, or the file holds other objects."""
    said = str(error)[:LONGEST]
    path = path_of(args[0] if args else kwargs.get("f"))
    if NO_DEVICE in said:
        given = args[1] if len(args) > 1 else kwargs.get("map_location")
        asked = str(given) if type(given) in (str, torch.device) else ""
        told = given is not None
        facts = {"no device": said, "path": path, "asked": asked, "told": told}
        recorder.note(Did.HOOK, op=op, facts=facts)
    elif isinstance(error, pickle.UnpicklingError):
        recorder.note(Did.HOOK, op=op, facts={"no plain file": said, "path": path})


def note_loaded(
    recorder: Recorder,
    data: Any,
    path: Any,
    op: str,
    mapped: bool,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """`more` facts by key, where they are known; other keys were not read then."""
    place = path_of(path)
    if mapped:
        recorder.mapped.add(place)
    site = recorder.site_here()
    for key, tensor in tensors_below(data, in_objects=True):
        known = {} if more is None else more.get(key)
        if known is not None and (entry := recorder.storages.entry(tensor)):
            if not entry.name:
                recorder.storages.name(entry, key)
            facts = {"path": place, "key": key, "mapped": mapped and entry.device == "cpu"}
            recorder.note(Did.LOAD, entry, op=op, facts={**facts, **known}, site=site)
            recorder.loads.gave(entry, place)
    recorder.changed()
