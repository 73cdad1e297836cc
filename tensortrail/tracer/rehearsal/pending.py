"""Copies to the host that nobody waited for: reading one is a race on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class Pending:
    def __init__(self) -> None:
        self._copies: dict[int, tuple[int, Any]] = {}
        """Storage of the host copy -> device it comes from, and the storage kept."""
        self.told: Callable[[Any, Any], None] = lambda func, tensor: None
        """Called when a pending copy is read; the recorder listens."""

    def add(self, copy: torch.Tensor, index: int) -> None:
        storage = copy.untyped_storage()
        self._copies[storage._cdata] = (index, storage)

    def done(self, index: int | None = None) -> None:
        """The device caught up: its copies, or all, have arrived."""
        if self._copies:
            self._copies = {
                key: each
                for key, each in self._copies.items()
                if index is not None and each[0] != index
            }

    def read(self, func: Any, named: Sequence[tuple[str, torch.Tensor]]) -> None:
        if not self._copies:
            return
        for _, tensor in named:
            self.host_read(func, tensor)

    def host_read(self, func: Any, tensor: torch.Tensor) -> None:
        if self._copies and type(tensor) is torch.Tensor and tensor.layout is torch.strided:
            key = tensor.untyped_storage()._cdata
            if key in self._copies:
                del self._copies[key]
                self.told(func, tensor)
