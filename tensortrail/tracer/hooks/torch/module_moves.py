"""Whole modules are moved at once; their parameters get names here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import Module

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.left_behind import bytes_by_device, note_moved
from tensortrail.tracer.hooks.shared.looking import looking_after
from tensortrail.tracer.hooks.shared.refused_moves import moved_by_hand
from tensortrail.tracer.hooks.torch.plain_attributes import (
    destination,
    left_behind,
    lies_on,
    plain_devices,
)
from tensortrail.tracer.hooks.torch.storage_methods import entry_of
from tensortrail.tracer.identity.module_tensors import Part, Slot, owned, parts, slots_of
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.patching.mode_stack import stepped_aside
from tensortrail.tracer.patching.patches import Around, Patches
from tensortrail.tracer.watching.mode import TrailMode
from tensortrail.tracer.watching.moved_parameters import seen_by_hand

LIBRARY = "torch"


def install(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(Module, "_apply", _applying(recorder))
    patches.wrap(Module, "to_empty", looking_after(recorder, _emptied))
    patches.wrap(torch.utils, "swap_tensors", _swapping(recorder))


def _applying(recorder: Recorder) -> Around:
    def around(original: Any, module: Module, *args: Any, **kwargs: Any) -> Any:
        local = recorder.of_thread
        if local.inside_module:
            return original(module, *args, **kwargs)
        modules: list[Part] = recorder.guarded(_look, module) or []
        found = recorder.guarded(_slots, module, modules) or []
        before = recorder.guarded(_named, found) or []
        seen = None
        if len(args) == 1 and not kwargs:
            seen = recorder.guarded(seen_by_hand, modules, found, args[0])
        local.inside_module += 1
        try:
            if seen is None:
                return original(module, *args, **kwargs)
            with stepped_aside(TrailMode):
                return original(module, seen)
        finally:
            local.inside_module -= 1
            move = args[0] if args else None
            recorder.guarded(_applied, module, before, move, None if seen is None else found)

    return around


def _look(recorder: Recorder, module: Module) -> list[Part]:
    return parts(module)


def _slots(recorder: Recorder, module: Module, modules: Sequence[Part]) -> list[Slot]:
    return list(slots_of(modules, recorder.models.of(module)))


def _named(recorder: Recorder, found: Sequence[Slot]) -> list[Entry]:
    return recorder.name_tensors((name, tensors[key]) for name, tensors, key in found)


def _applied(
    recorder: Recorder, module: Module, before: list[Entry], move: Any, found: list[Slot] | None
) -> None:
    """`found` tells where its tensors are, if that cannot have changed."""
    after = recorder.name_module(module) if found is None else _named(recorder, found)
    was, now = bytes_by_device(before), bytes_by_device(after)
    if was != now:
        more = {} if recorder.of_thread.library_hook else moved_by_hand(recorder, module)
        shared = {entry.number for entry in (*before, *after)}
        more |= left_behind(recorder, module, set(was) - set(now), shared)
        note_moved(recorder, type(module).__name__, before, after, more)
    elif not before and (went := destination(move)):
        _nothing_to_move(recorder, module, went)


def _nothing_to_move(recorder: Recorder, module: Module, went: str) -> None:
    """A module without parameters may keep tensors all the same, in plain attributes."""
    elsewhere = {each for each in plain_devices(recorder, module) if not lies_on(each, went)}
    if more := left_behind(recorder, module, elsewhere, ()):
        note_moved(recorder, type(module).__name__, (), (), more | {"after": {went: 0}})


def _emptied(recorder: Recorder, result: Any, module: Module, **options: Any) -> None:
    recorder.fresh_memory.made_module(tensor for _, tensor in owned(module))
    for _, part in parts(module):
        for name in part._non_persistent_buffers_set:
            entry = recorder.storages.entry(part._buffers.get(name))
            if entry is not None:
                recorder.fresh_memory.unsaved[entry.number] = type(part).__name__


def _swapping(recorder: Recorder) -> Around:
    def around(original: Any, first: Any, second: Any) -> Any:
        old = recorder.guarded(entry_of, first)
        result = original(first, second)
        recorder.guarded(_swapped, old, first)
        return result

    return around


def _swapped(recorder: Recorder, old: Any, tensor: Any) -> None:
    recorder.swapped(old, recorder.storages.entry(tensor), "torch.utils.swap_tensors")
