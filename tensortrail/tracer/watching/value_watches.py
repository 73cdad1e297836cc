"""Calls that make a tensor, or values of one in memory of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Parameter

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.inner_tensors import is_wrapper
from tensortrail.tracer.noticing.self_averages import same_memory
from tensortrail.tracer.watching.graph_watches import with_graph
from tensortrail.tracer.watching.watch import Args, Kwargs, Watch

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder


class Creation(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        for entry in recorder.storages.entries(result):
            recorder.note(Did.CREATE, entry, op=func)
        if args and is_wrapper(args[0]):
            recorder.wrappers.met(args[0])
            recorder.wrappers.answered(func, args[0], result, kwargs)
        if func in LEAVES_UNWRITTEN:
            recorder.fresh_memory.made(result)
        if func in COPIES_VALUES and args and (graph := with_graph(args[0])) is not None:
            recorder.cut_graphs.cut(func, graph)
        recorder.changed()


class SameType(Watch):
    """Operations whose answer must be of the operand's type, as clone and detach."""

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if args and is_wrapper(args[0]):
            recorder.wrappers.met(args[0])
            recorder.wrappers.answered(func, args[0], result, kwargs)
        elif args and self is not SHARES and _follows(recorder, func, args[0]):
            source, copy = recorder.storages.entry(args[0]), recorder.storages.entry(result)
            recorder.copied(source, copy)


SHARES = SameType()
"""Those that give the same memory."""


def _follows(recorder: Recorder, func: Any, tensor: Any) -> bool:
    """What is known of the values is worth knowing of a copy."""
    return recorder.fresh_memory.some or (func in COPIES and recorder.loads.gave_to(tensor))


class OtherNumbers(Watch):
    """Operations that give the same values in another type."""

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if result is not args[0] and _follows(recorder, func, args[0]):
            source, copy = recorder.storages.entry(args[0]), recorder.storages.entry(result)
            recorder.note(Did.COPY, copy, source, func)
            recorder.copied(source, copy)


class Copy(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        source = args[1] if len(args) > 1 else kwargs.get("src", kwargs.get("other"))
        if same_memory(args):
            recorder.self_averages.wrote(func, args[0])
        target = recorder.storages.entry(args[0])
        origin = recorder.storages.entry(source)
        if target is None or origin is None:
            return
        without_values = recorder.fresh_memory.some and recorder.fresh_memory.is_fresh(origin)
        if target.device != origin.device or target.name or origin.name or without_values:
            facts = {"non_blocking": True} if kwargs.get("non_blocking") else None
            recorder.note(Did.COPY, target, origin, func, facts)
        if type(args[0]) is Parameter and origin.number in recorder.loads.files:
            _tell_spread(recorder, func, args[0], source, target)
        recorder.loads.wrote(target, origin)
        recorder.meta_writes.wrote(args[0])
        if recorder.unread_loads.some:
            recorder.unread_loads.taken(origin.number)
        recorder.fresh_memory.copied(origin, target)


def _tell_spread(recorder: Recorder, func: Any, weight: Any, source: Any, target: Any) -> None:
    """Several numbers of a file that fill more of them, as broadcasting lets them."""
    here, there = weight.shape, source.shape
    if 1 < there.numel() < here.numel():
        facts = {
            "spread over": [list(there), list(here)],
            "file": recorder.loads.file_of([source]),
        }
        recorder.note(Did.HOOK, target, op=func, facts=facts)


COPIES = {
    torch.clone, Tensor.clone, Tensor.half, Tensor.float, Tensor.double, Tensor.bfloat16,
}  # fmt: skip
COPIES_VALUES = {torch.tensor}
LEAVES_UNWRITTEN = {
    torch.empty, torch.empty_strided, torch.empty_like, torch.empty_permuted,
    Tensor.new_empty, Tensor.new_empty_strided,
}  # fmt: skip
