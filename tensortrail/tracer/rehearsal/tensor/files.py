"""A file that is saved from a simulated device says `cuda:0`, and is loaded back onto it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.answers import answers
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor, get_data

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
    kind, attributes = tensor.__class__, _attributes(tensor)
    if issubclass(kind, Parameter):  # torch itself keeps the attributes, and not the class
        args: tuple[Any, ...] = (get_data(tensor), tensor.requires_grad, OrderedDict())
        if not attributes:
            return torch._utils._rebuild_parameter, args
        return torch._utils._rebuild_parameter_with_state, (*args, attributes)
    function, arguments = _bytes_reduced(tensor, protocol)
    if kind is Tensor and not attributes:
        return function, arguments
    return torch._tensor._rebuild_from_type_v2, (function, kind, arguments, attributes)


def _attributes(tensor: SimTensor) -> Any:
    own: Any = getattr(type(tensor), "__getstate__", None)
    plain = getattr(object, "__getstate__", None)  # there is none before Python 3.11
    return dict(vars(tensor)) if own is plain else own(tensor)


def _bytes_reduced(tensor: SimTensor, protocol: Any) -> Any:
    inner = tensor.inner.detach()
    if not getattr(_here, "saving", False):
        return restored, (inner.clone(), tensor.index, tensor.requires_grad)
    if inner.layout is not torch.strided:
        return tensor._reduce_ex_internal(protocol)
    return inner.requires_grad_(tensor.requires_grad)._reduce_ex_internal(protocol)


def restored(inner: Tensor, index: int, requires_grad: bool) -> Any:
    """What was pickled by itself, without a file of torch's around it."""
    simulation = state.required()
    made = simulation.moved(inner, simulation.index_of(f"cuda:{index}"))
    return made.requires_grad_(requires_grad)
