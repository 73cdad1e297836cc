"""Memory of the CPU says that it is pinned."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import Parameter

from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.answers import ANSWERS
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor, is_plain

aten = torch.ops.aten
ASKED = {aten.is_pinned.default}
PINS = {aten.pin_memory.default, aten._pin_memory.default}


class Pinned:
    def __init__(self) -> None:
        self._storages: dict[int, Any] = {}

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """An operation on the host; the CPU build has no memory to pin."""
        if func in ASKED:
            return self.holds(args[0])
        if func in PINS:
            return self.pin(args[0])
        if kwargs.get("pin_memory"):
            return self.hold(func(*args, **{**kwargs, "pin_memory": False}))
        return func(*args, **kwargs)

    def pin(self, tensor: Tensor) -> Tensor:
        if self.holds(tensor):
            return tensor
        return self.hold(tensor.detach().clone().requires_grad_(tensor.requires_grad))

    def hold(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        self._storages[storage._cdata] = StorageWeakRef(storage)
        return tensor

    def holds(self, tensor: Tensor) -> bool:
        try:
            key = tensor.untyped_storage()._cdata
        except (RuntimeError, NotImplementedError):
            return False
        known = self._storages.get(key)
        if known is not None and known.expired():
            del self._storages[key]
            return False
        return known is not None


def install(pinned: Pinned, replaced: Replacements) -> None:
    plain = Tensor.pin_memory

    def pin_memory(self: Tensor, device: Any = None) -> Any:
        return pinned.pin(self) if type(self) in (Tensor, Parameter) else plain(self)

    def is_pinned(self: Tensor, device: Any = None) -> bool:
        if isinstance(self, SimTensor) or is_plain(type(self)):
            return pinned.holds(self)
        try:  # a CPU build answers "no" without asking the class of a wrapper
            return bool(aten.is_pinned.default(self))
        except (NotImplementedError, TypeError):
            return False

    # Torch's C++ looks it up by name when a mode above has called the original.
    replaced.put(ANSWERS, pin_memory, ANSWERS[plain])
    replaced.put(Tensor, "pin_memory", pin_memory)
    replaced.put(Tensor, "is_pinned", is_pinned)
