"""Files: what is saved from a simulated device says `cuda:0`, and is loaded back onto it."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.simulation import Simulation
from tensortrail.tracer.rehearsal.tensor import SimTensor, parameter

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
    load, save = torch.load, torch.save

    def saving(*args: Any, **kwargs: Any) -> Any:
        _here.saving = True
        try:
            return save(*args, **kwargs)
        finally:
            _here.saving = False

    def loading(f: Any, *args: Any, **kwargs: Any) -> Any:
        files.begin()
        try:
            return files.placed(load(f, *args, **kwargs))
        finally:
            files.end()

    replaced.put(torch, "load", loading)
    replaced.put(torch, "save", saving)


class Files:
    """Storages that a file says lie on a GPU, while it is loaded."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._loaded: dict[int, tuple[int, Any]] = {}
        self._depth = 0

    def begin(self) -> None:
        self._depth += 1

    def end(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._loaded.clear()

    def tag(self, storage: Any) -> str | None:
        plain = getattr(storage, "_untyped_storage", storage)
        index = self._simulation.memory.index_of(plain)
        return None if index is None else f"cuda:{index}"

    def restore(self, storage: Any, location: str) -> Any:
        if not location.startswith("cuda"):
            return None
        torch.serialization._validate_device(location, "cuda")
        index = self._simulation.index_of(location)
        plain = getattr(storage, "_untyped_storage", storage)
        self._loaded[plain._cdata] = (index or 0, plain)
        return storage

    def placed(self, data: Any) -> Any:
        """The loaded object, with its tensors on the devices the file names."""
        return self._placed(data, {})

    def _index_of(self, tensor: Tensor) -> int | None:
        if isinstance(tensor, SimTensor):
            return None
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):
            return None
        index, _ = self._loaded.get(storage._cdata, (self._simulation.memory.index_of(storage), 0))
        return index

    def _placed(self, data: Any, done: dict[int, Any]) -> Any:
        if id(data) in done:
            return done[id(data)]
        if isinstance(data, Tensor):
            if hasattr(data, "__tensor_flatten__") and not isinstance(data, SimTensor):
                return self._placed_inside(data, done)
            index = self._index_of(data)
            if index is None:
                return data
            is_parameter = isinstance(data, torch.nn.Parameter)
            made = self._simulation.wrap(data.detach(), index)
            if is_parameter:
                made = parameter(made, data.requires_grad)
            else:
                made.requires_grad_(data.requires_grad)
            done[id(data)] = made
            return made
        done[id(data)] = data
        if isinstance(data, torch.nn.Module):
            for module in data.modules():
                for tensors in (module._parameters, module._buffers):
                    for name, value in tensors.items():
                        if value is not None:
                            tensors[name] = self._placed(value, done)
        elif isinstance(data, dict):
            for key, value in list(data.items()):
                data[key] = self._placed(value, done)
        elif type(data) is list:
            data[:] = [self._placed(each, done) for each in data]
        elif type(data) is tuple:
            return tuple(self._placed(each, done) for each in data)
        return data

    def _placed_inside(self, wrapper: Any, done: dict[int, Any]) -> Any:
        for name in wrapper.__tensor_flatten__()[0]:
            setattr(wrapper, name, self._placed(getattr(wrapper, name), done))
        return wrapper


def reduced(tensor: SimTensor, protocol: Any) -> Any:
    """As torch pickles a tensor of a GPU: in a file, the storage's tag says where it lies."""
    inner = tensor.inner.detach().requires_grad_(tensor.requires_grad)
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    if not getattr(_here, "saving", False):
        return restored, (inner.detach(), tensor.index, tensor.requires_grad, is_parameter)
    if is_parameter:
        return torch.nn.Parameter(inner, tensor.requires_grad).__reduce_ex__(protocol)
    return inner.__reduce_ex__(protocol)


def restored(inner: Tensor, index: int, requires_grad: bool, is_parameter: bool) -> Any:
    """What was pickled by itself, without a file of torch's around it."""
    made = state.required().wrap(inner, index)
    if is_parameter:
        return parameter(made, requires_grad)
    return made.requires_grad_(requires_grad)
