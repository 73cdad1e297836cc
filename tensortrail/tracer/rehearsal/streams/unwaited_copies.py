"""A copy to the CPU that nobody waited for is pending: reading it is a race on a GPU. So is writing
into pinned memory whose copy to the GPU nobody waited for."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tensortrail.tracer.rehearsal.streams.clocks import Order, Queue

READS_NOTHING = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like",
                 "new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided",
                 "is_pinned", "set_", "resize_", "detach", "lift_fresh")  # fmt: skip
ON_THE_STREAM = ("copy_", "_to_copy", "index", "index_put_", "_index_put_impl_")
"""Operations on a device take host tensors over in the order of the stream."""
NONE: tuple[Any, int, Callable[[], Any]] = (None, 0, lambda: None)


class Pending:
    def __init__(self, order: Order) -> None:
        self._order = order
        self._copies: dict[int, tuple[Queue, int, Any]] = {}
        """Storage of the host copy -> the stream that makes it, when, and a weak reference."""
        self._sent: dict[int, tuple[Queue, int, Any]] = {}
        """The same of pinned storages that are copied to a device."""
        self.told: Callable[[Any, Any, int], None] = lambda func, tensor, index: None
        """Called when a pending copy is read; the recorder listens."""
        self.refilled: Callable[[Any, Any, int], None] = lambda func, tensor, index: None
        """Called when what is still to be copied to a device is written."""

    def add(self, copy: torch.Tensor, queue: Queue) -> None:
        storage = copy.untyped_storage()
        self._copies[storage._cdata] = (queue, queue.time, weakref.ref(storage))

    def sends(self, pinned: torch.Tensor, queue: Queue) -> None:
        """It is copied to the queue's device, in its turn."""
        storage = pinned.untyped_storage()
        self._sent[storage._cdata] = (queue, queue.time, weakref.ref(storage))

    def written(self, func: Any, target: Any) -> None:
        """The host wrote into its first operand."""
        if type(target) is torch.Tensor and target.layout is torch.strided:
            storage = target.untyped_storage()
            queue, time, sent = self._sent.pop(storage._cdata, NONE)
            if sent() is storage and not self._order.host_is_past(queue, time):
                self.refilled(func, target, queue.device)

    def read(self, func: Any, named: Sequence[tuple[str, torch.Tensor]], on_device: bool) -> None:
        if self._sent and not on_device and named and func._schema.is_mutable:
            self.written(func, named[0][1])
        if not self._copies or func.is_view:
            return
        name = func._schema.name.partition("::")[2]
        if name in READS_NOTHING or (on_device and name in ON_THE_STREAM):
            return
        for _, tensor in named:
            self.host_read(func, tensor)

    def host_read(self, func: Any, tensor: torch.Tensor) -> None:
        if self._copies and type(tensor) is torch.Tensor and tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            queue, time, copied = self._copies.pop(storage._cdata, NONE)
            if copied() is storage and not self._order.host_is_past(queue, time):
                self.told(func, tensor, queue.device)
