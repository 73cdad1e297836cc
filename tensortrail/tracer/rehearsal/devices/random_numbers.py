"""Generators of random numbers say that they are a GPU's.

Their numbers are the CPU's, so that a rehearsed run draws what a run without a GPU draws."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext, _device_constructors

from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements

PlainGenerator = torch.Generator


class _AnyGenerator(type(PlainGenerator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, PlainGenerator)


def install(simulation: Simulation, replaced: Replacements) -> None:
    def set_rng_state(new_state: Tensor) -> None:
        torch.default_generator.set_state(_on_the_cpu(new_state))

    for owner in (torch, torch.random):
        replaced.put(owner, "set_rng_state", set_rng_state)
    kind = _generator(simulation)
    replaced.put(torch, "Generator", kind)
    of_devices = tuple(map(_default(kind), range(simulation.spec.count)))
    replaced.put(torch.cuda, "default_generators", of_devices)


def _generator(simulation: Simulation) -> type:
    """`torch.Generator`, which makes those of simulated devices too."""

    class Generator(PlainGenerator, metaclass=_AnyGenerator):  # type: ignore[misc,valid-type]
        __module__, __qualname__ = "torch._C", "Generator"

        def __new__(cls, device: Any = "cpu") -> Any:
            index = simulation.index_of(device)
            if index is None:
                return PlainGenerator(device)
            made = PlainGenerator.__new__(cls, "cpu")
            made._index = index
            return made

        @property
        def device(self) -> torch.device:
            return torch.device("cuda", self._index)

        def set_state(self, state: Tensor) -> Any:
            return super().set_state(_on_the_cpu(state))

        def clone_state(self) -> Any:
            made = type(self)(self.device)
            made.set_state(self.get_state())
            return made

        def __reduce__(self) -> Any:
            return _restored, (str(self.device), self.get_state())

    return Generator


def _default(kind: Any) -> Any:
    """The generator of a device: the host's own, under another name."""

    def made(index: int) -> Any:
        generator = kind(f"cuda:{index}")
        for name in ("manual_seed", "seed", "initial_seed", "get_state"):
            setattr(generator, name, getattr(torch.default_generator, name))
        generator.set_state = lambda state: torch.default_generator.set_state(_on_the_cpu(state))
        return generator

    return made


def _on_the_cpu(state: Any) -> Any:
    """Raise as torch does for a state on a GPU, also that of the generator of a GPU."""
    if isinstance(state, Tensor) and state.device.type != "cpu":
        raise TypeError("RNG state must be a torch.ByteTensor")
    return state


def _restored(device: str, state: Tensor) -> Any:
    made = torch.Generator(device)
    made.set_state(state)
    return made


def check(func: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Raise as torch does if the numbers are wanted on another kind of device."""
    generator, device = kwargs["generator"], kwargs.get("device")
    if device is None and args and isinstance(args[0], Tensor):
        device = args[0].device
    elif device is None:
        device = _default_device() if func in _device_constructors() else "cpu"
    wanted = torch.device(device).type
    if generator.device.type != wanted and wanted in ("cpu", "cuda"):
        raise RuntimeError(
            f"Expected a '{wanted}' device type for generator but found '{generator.device.type}'"
        )


def _default_device() -> Any:
    """That of the innermost `with torch.device(...)` or `set_default_device`."""
    modes = reversed(_get_current_function_mode_stack())
    return next((each.device for each in modes if isinstance(each, DeviceContext)), "cpu")
