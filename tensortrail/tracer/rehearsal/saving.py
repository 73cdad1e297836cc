"""Files: what is saved from a simulated device says `cuda:0`, and is loaded back onto it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.simulation import Simulation
from tensortrail.tracer.rehearsal.tensor import SimTensor, parameter

BEFORE_ALL_OTHERS = -1


def install(simulation: Simulation, replaced: Replacements) -> None:
    files = Files(simulation)
    registry = list(torch.serialization._package_registry)
    replaced.put(
        torch.serialization,
        "_package_registry",
        [(BEFORE_ALL_OTHERS, files.tag, files.restore), *registry],
    )
    load = torch.load

    def loading(f: Any, *args: Any, **kwargs: Any) -> Any:
        files.begin()
        try:
            return files.placed(load(f, *args, **kwargs))
        finally:
            files.end()

    replaced.put(torch, "load", loading)


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
        if not self._loaded:
            return data
        return self._placed(data, {})

    def _placed(self, data: Any, done: dict[int, Any]) -> Any:
        if id(data) in done:
            return done[id(data)]
        if isinstance(data, Tensor):
            found = self._loaded.get(_key(data))
            if found is None:
                return data
            index, _ = found
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


def _key(tensor: Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return 0


def reduced(tensor: SimTensor, protocol: Any) -> Any:
    """As torch pickles a tensor of a GPU: the storage's tag says where it lies."""
    inner = tensor.inner.detach().requires_grad_(tensor.requires_grad)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(inner, tensor.requires_grad).__reduce_ex__(protocol)
    return inner.__reduce_ex__(protocol)
