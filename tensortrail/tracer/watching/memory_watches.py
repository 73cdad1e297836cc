"""Calls that give a tensor other memory, or give its memory away."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.inner_tensors import is_wrapper
from tensortrail.tracer.noticing.fresh_memory import LOOKS_FOR_A_MODULE, LOOKS_FOR_A_TENSOR
from tensortrail.tracer.watching.watch import Args, Kwargs, Watch

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder


class DataSwap(Watch):
    looks_before = True

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        return recorder.storages.entry(args[0])

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if is_wrapper(args[0]):
            recorder.wrappers.given_data(func, args[0], args[1])
        recorder.swapped(before, recorder.storages.entry(args[0]), func)
        recorder.fresh_memory.held(args[0])


class Resize(Watch):
    looks_before = True

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        return nbytes(args[0])

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        after = nbytes(args[0])
        entry = recorder.storages.entry(args[0])
        if entry is not None and before is not None and before != after:
            recorder.note(Did.RESIZE, entry, op=func, facts={"before": before, "after": after})
            if after is not None and after > before:
                looks = LOOKS_FOR_A_MODULE if entry.name else LOOKS_FOR_A_TENSOR
                recorder.fresh_memory.grown(entry, before, looks, nbytes=after)


def nbytes(tensor: Any) -> int | None:
    with torch._C.DisableTorchFunction(), suppress(RuntimeError, NotImplementedError):
        return int(tensor.untyped_storage().nbytes())
    return None


class Share(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        entry = recorder.storages.entry(args[0])
        if entry is not None and not recorder.often(Did.ALIAS, func):
            recorder.note(Did.ALIAS, entry, op=func)


class Address(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        recorder.addresses.asked(func, args[0], result)


class GivesStorage(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        recorder.wrappers.storage(func, args[0], result)


GIVES_STORAGE = GivesStorage()
