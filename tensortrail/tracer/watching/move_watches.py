"""Calls that move a tensor to another device or give it another type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._C import TensorBase

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.inner_tensors import PLAIN, is_wrapper
from tensortrail.tracer.watching.watch import Args, Kwargs, Watch

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder

TO = TensorBase.to
"""As torch has it: while a rehearsal is on, another stands on `Tensor`."""


class Move(Watch):
    looks_before = True

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        if is_wrapper(args[0]):
            recorder.wrappers.met(args[0])
        return recorder.storages.entries(args[0])

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if result is args[0]:
            if before and asks_device(func, args, kwargs) and not recorder.often(Did.ASKED, func):
                recorder.note(Did.ASKED, before[0], op=func)
            return
        after = recorder.storages.entries(result)
        if len(before) != len(after):
            before = [before[0] if before else None] * len(after)
        for old, new in zip(before, after, strict=True):
            if old is None:
                recorder.note(Did.CREATE, new, op=func)
            elif old.device != new.device or func is Tensor.pin_memory:
                facts = {"non_blocking": True} if is_non_blocking(func, args, kwargs) else None
                recorder.note(Did.MOVE, new, old, func, facts)
            elif old.name and new is not old:
                recorder.note(Did.COPY, new, old, func)
            recorder.copied(old, new)
        if not (type(result) in PLAIN and type(args[0]) in PLAIN):
            _tell_wrappers(recorder, func, args, kwargs, result)
        if not recorder.alert:  # a move may give a reason to look, and takes none away
            recorder.changed()


def _tell_wrappers(recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, result: Any) -> None:
    if is_wrapper(result):
        recorder.wrappers.met(result)
        recorder.wrappers.moved(func, args[0], result)
    elif is_wrapper(args[0]) and moves_only(func, args, kwargs):
        recorder.wrappers.answered(func, args[0], result, {"device": result.device})


def moves_only(func: Any, args: Args, kwargs: Kwargs) -> bool:
    """Another device was asked for and no other type of numbers, for which values are enough."""
    dtypes = any(isinstance(each, torch.dtype) for each in (*args, *kwargs.values()))
    return asks_device(func, args, kwargs) and not dtypes


def asks_device(func: Any, args: Args, kwargs: Kwargs) -> bool:
    if func is not TO:
        return True
    return "device" in kwargs or any(isinstance(a, (str, torch.device, int)) for a in args[1:2])


def is_non_blocking(func: Any, args: Args, kwargs: Kwargs) -> bool:
    if kwargs and kwargs.get("non_blocking"):
        return True
    return func is TO and len(args) > 2 and any(each is True for each in args)


MOVES = Move()
