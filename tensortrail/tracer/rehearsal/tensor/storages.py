"""Storages say on which simulated device they lie."""

from __future__ import annotations

from typing import Any

import torch
from torch._C import DisableTorchFunction

from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements

UntypedStorage: Any = torch.UntypedStorage


def install(simulation: Simulation, replaced: Replacements) -> None:
    memory = simulation.memory
    plain_device = torch._C.StorageBase.device
    plain_resize = UntypedStorage.resize_
    plain_new_shared = UntypedStorage._new_shared.__func__
    plain_cuda, plain_clone = UntypedStorage.cuda, UntypedStorage.clone

    def device(self: Any) -> torch.device:
        index = memory.index_of(self)
        known: torch.device = (
            plain_device.__get__(self) if index is None else torch.device("cuda", index)
        )
        return known

    def copied(self: Any, index: int, non_blocking: bool = False) -> Any:
        with DisableTorchFunction():  # nobody sees it before it is on its device
            made = torch.empty(self.nbytes(), dtype=torch.uint8).untyped_storage()
        memory.hold(made, index, None)
        simulation.races.moves(None, "UntypedStorage.copy_")
        return made.copy_(self, non_blocking)

    def clone(self: Any) -> Any:
        index = memory.index_of(self)
        return plain_clone(self) if index is None else copied(self, index)

    def to_cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        target = simulation.index_of("cuda" if device is None else device)
        if target is None or target == memory.index_of(self):
            return self if target is not None else plain_cuda(self, device, non_blocking)
        return copied(self, target, non_blocking)

    def resize_(self: Any, size: int) -> Any:
        index = memory.index_of(self)
        if index is not None:
            memory.ask(index, size - self.nbytes())
        result = plain_resize(self, size)
        memory.resized(self)
        return result

    def new_shared(cls: Any, size: int, *, device: Any = "cpu") -> Any:
        if torch.device(device).type == "cuda":
            simulation.check_usable()
        return plain_new_shared(cls, size, device=device)

    def get_device(self: Any) -> int:
        index = memory.index_of(self)
        return -1 if index is None else index

    replaced.put(UntypedStorage, "device", property(device))
    replaced.put(UntypedStorage, "cuda", to_cuda)
    replaced.put(UntypedStorage, "clone", clone)
    replaced.put(UntypedStorage, "resize_", resize_)
    replaced.put(UntypedStorage, "_new_shared", classmethod(new_shared))
    replaced.put(UntypedStorage, "get_device", get_device)
