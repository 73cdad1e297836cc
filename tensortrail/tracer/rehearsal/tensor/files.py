"""A file that is saved from a simulated device says `cuda:0`, and is loaded back onto it."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor, answers, parameter

BEFORE_ALL_OTHERS = -1
_here = threading.local()


def install(simulation: Simulation, replaced: Replacements) -> None:
    files = Files(simulation)
    registry = list(torch.serialization._package_registry)
    replaced.put(
        torch.serialization,
        "_package_registry",
        [(BEFORE_ALL_OTHERS, files.tag, files.restore), *registry],
    )
    save = torch.save

    def saving(*args: Any, **kwargs: Any) -> Any:
        _here.saving = True
        try:
            return save(*args, **kwargs)
        finally:
            _here.saving = False

    replaced.put(torch, "save", saving)


class Files:
    """Storages on simulated devices, as files say where they lie.

    What is read is put on its device at once: torch's own code then builds tensors around it."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def tag(self, storage: Any) -> str | None:
        plain = getattr(storage, "_untyped_storage", storage)
        index = self._simulation.memory.index_of(plain)
        return None if index is None else f"cuda:{index}"

    def restore(self, storage: Any, location: str) -> Any:
        if not location.startswith("cuda"):
            return None
        torch.serialization._validate_device(location, "cuda")
        index = self._simulation.index_of(location) or 0
        self._simulation.put(getattr(storage, "_untyped_storage", storage), index, "torch.load")
        return storage


@answers(Tensor.__reduce_ex__)
def reduced(tensor: SimTensor, protocol: Any) -> Any:
    """As torch pickles a tensor of a GPU: in a file, the storage's tag says where it lies."""
    inner = tensor.inner.detach()
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    if not getattr(_here, "saving", False):
        return restored, (inner.clone(), tensor.index, tensor.requires_grad, is_parameter)
    if inner.layout is not torch.strided:
        return tensor._reduce_ex_internal(protocol)
    inner.requires_grad_(tensor.requires_grad)
    if is_parameter:
        return torch.nn.Parameter(inner, tensor.requires_grad).__reduce_ex__(protocol)
    return inner.__reduce_ex__(protocol)


def restored(inner: Tensor, index: int, requires_grad: bool, is_parameter: bool) -> Any:
    """What was pickled by itself, without a file of torch's around it."""
    simulation = state.required()
    made = simulation.moved(inner, simulation.index_of(f"cuda:{index}"))
    if is_parameter:
        return parameter(made, requires_grad)
    return made.requires_grad_(requires_grad)
