"""Copies to the host that nobody waited for: reading one is a race on a GPU."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

READS_NOTHING = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like",
                 "new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided",
                 "is_pinned", "set_", "resize_", "detach", "lift_fresh")  # fmt: skip
ON_THE_STREAM = ("copy_", "_to_copy", "index", "index_put_", "_index_put_impl_")
"""Operations on a device take host tensors over in the order of the stream."""


class Pending:
    def __init__(self) -> None:
        self._copies: dict[int, tuple[int, Any]] = {}
        """Storage of the host copy -> device it comes from, and a weak reference to it."""
        self.told: Callable[[Any, Any, int], None] = lambda func, tensor, index: None
        """Called when a pending copy is read; the recorder listens."""

    def add(self, copy: torch.Tensor, index: int) -> None:
        storage = copy.untyped_storage()
        self._copies[storage._cdata] = (index, weakref.ref(storage))

    def done(self, index: int | None = None) -> None:
        """The device caught up: its copies, or all, have arrived."""
        if self._copies:
            self._copies = {
                key: each
                for key, each in self._copies.items()
                if index is not None and each[0] != index
            }

    def read(self, func: Any, named: Sequence[tuple[str, torch.Tensor]], on_device: bool) -> None:
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
            found = self._copies.pop(storage._cdata, None)
            if found is not None and found[1]() is storage:
                self.told(func, tensor, found[0])
