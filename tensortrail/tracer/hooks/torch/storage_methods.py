"""No mode sees the methods of UntypedStorage, or `set_`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.of_thread import Resizes
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.looking import looking_after
from tensortrail.tracer.noticing.fresh_memory import LOOKS_FOR_A_MODULE, LOOKS_FOR_A_TENSOR
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "torch"


def install(recorder: Recorder, patches: Patches) -> None:
    with patches.paused():
        torch.overrides.get_testing_overrides()  # torch remembers the functions it finds now
    storage = torch.UntypedStorage
    patches.wrap(storage, "resize_", _resizing(recorder))
    patches.wrap(storage, "__init__", looking_after(recorder, _made))
    for name in ("copy_", "fill_", "__setitem__", "_set_from_file", "_share_fd_cpu_"):
        patches.wrap(storage, name, looking_after(recorder, _filled))
    for name in ("cpu", "cuda", "to", "pin_memory", "clone"):
        patches.wrap(storage, name, _moving(recorder, name))
    patches.wrap(torch.Tensor, "set_", _setting(recorder))
    for name in ("from_numpy", "frombuffer", "from_file"):
        patches.wrap(torch, name, _sharing(recorder, name))

    def overridden(owner: type) -> None:
        patches.wrap(owner, "untyped_storage", looking_after(recorder, _giving))

    def sizes_asked() -> None:
        for name in ("nbytes", "size"):
            patches.wrap(storage, name, _sizing(recorder, name))

    recorder.wrappers.overridden = overridden
    recorder.wrappers.sizes_asked = sizes_asked


def _giving(recorder: Recorder, storage: Any, tensor: Any, *_: Any, **__: Any) -> None:
    recorder.wrappers.storage("Tensor.untyped_storage", tensor, storage)


def _sizing(recorder: Recorder, name: str) -> Around:
    def sized(recorder: Recorder, nbytes: int, storage: Any) -> None:
        recorder.wrappers.size(f"UntypedStorage.{name}", storage, nbytes)

    return looking_after(recorder, sized)


def _resizing(recorder: Recorder) -> Around:
    def around(original: Any, storage: Any, *args: Any, **kwargs: Any) -> Any:
        before = storage.nbytes()
        result = original(storage, *args, **kwargs)
        after = storage.nbytes()
        if before != after:
            recorder.guarded(_resized, storage, before, after)
        return result

    return around


def _resized(recorder: Recorder, storage: Any, before: int, after: int) -> None:
    entry = recorder.storages.of_storage(storage)
    if entry is None and after > before:
        entry = recorder.storages.add(storage)
    if entry is None:
        return
    several = recorder.of_thread.resizes
    site = 0
    if several is not None:
        site = several.site = several.site or recorder.site_here()
    facts = {"before": before, "after": after}
    recorder.note_alike(Did.RESIZE, entry, "UntypedStorage.resize_", facts, site)
    if not after:
        recorder.fresh_memory.freed(entry.number)
    elif after > before:
        if several is not None and several.filled:
            recorder.fresh_memory.goes_on(LOOKS_FOR_A_MODULE)
        else:
            recorder.fresh_memory.grown(entry, before, LOOKS_FOR_A_MODULE, nbytes=after)


@contextmanager
def resized_at_one_line(recorder: Recorder, filled: bool = False) -> Iterator[None]:
    """All storages that are resized meanwhile are so by one line, which has to be found once; those
    that grow may be filled before anybody else sees them."""
    local = recorder.of_thread
    before, local.resizes = local.resizes, Resizes(filled)
    try:
        yield
    finally:
        local.resizes = before


def _made(recorder: Recorder, _: Any, storage: Any, *args: Any, **__: Any) -> None:
    """By its constructor with a size: the bytes are whatever was there."""
    if args and isinstance(args[0], int) and (entry := recorder.storages.add(storage)):
        recorder.note(Did.CREATE, entry, op="torch.UntypedStorage")
        recorder.fresh_memory.grown(entry, 0, LOOKS_FOR_A_TENSOR)


def _filled(recorder: Recorder, _: Any, storage: Any, *__: Any, **___: Any) -> None:
    recorder.fresh_memory.storage_written(storage)


def _moving(recorder: Recorder, name: str) -> Around:
    def moved(recorder: Recorder, new: Any, old: Any, *_: Any, **__: Any) -> None:
        if new is old:
            return
        before = recorder.storages.of_storage(old)
        after = recorder.storages.add(new)
        if before is not None and after is not None:
            did = Did.MOVE if before.device != after.device else Did.COPY
            recorder.note(did, after, before, f"UntypedStorage.{name}")

    return looking_after(recorder, moved)


def _setting(recorder: Recorder) -> Around:
    def around(original: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.of_thread.inside_load or _pretends():
            return original(tensor, *args, **kwargs)
        old = recorder.guarded(entry_of, tensor)
        empty = bool(args) and recorder.guarded(_is_empty, args[0])
        result = original(tensor, *args, **kwargs)
        recorder.guarded(_set, old, tensor)
        if empty:
            recorder.guarded(_given, tensor)
        return result

    return around


def _pretends() -> bool:
    """Fake tensors stand for others: what they are set to is nobody's memory."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None


def entry_of(recorder: Recorder, tensor: Any) -> Any:
    return recorder.storages.entry(tensor)


def _set(recorder: Recorder, old: Any, tensor: Any) -> None:
    recorder.swapped(old, recorder.storages.entry(tensor), "Tensor.set_")
    recorder.fresh_memory.held(tensor)


def _is_empty(recorder: Recorder, given: Any) -> bool:
    return isinstance(given, torch.UntypedStorage) and not given.nbytes()


def _given(recorder: Recorder, tensor: Any) -> None:
    recorder.wrappers.set_to_nothing(tensor)


def _sharing(recorder: Recorder, name: str) -> Around:
    def shared(recorder: Recorder, tensor: Any, *_: Any, **__: Any) -> None:
        if entry := recorder.storages.entry(tensor):
            recorder.note(Did.CREATE, entry, op=f"torch.{name}")

    return looking_after(recorder, shared)
