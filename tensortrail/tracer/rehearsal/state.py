"""This holds the rehearsal that is on, for what simulated tensors ask of it."""

from __future__ import annotations

from typing import Any

import torch

from tensortrail.tracer.rehearsal.simulating import Simulating

HOST = torch.device("cpu")
SURELY_HOST = torch.device("cpu", 0)
"""As compiled code names it: C++ says `HOST` of simulated devices too."""
current: Simulating | None = None
refusal = ""
"""The last mix of devices: TorchScript passes on that it was refused, and not why."""


def required() -> Simulating:
    if current is None:
        raise RuntimeError(
            "this tensor lies on a simulated device, and the rehearsal is over: use it inside"
        )
    return current


FIRST = 64
"""Torch takes `cpu:0` to `cpu:127`, and any of a program's own means the host."""


def to_torch(index: int) -> torch.device:
    """What torch's C++ is told of a simulated device: a CPU beside the host's."""
    return torch.device("cpu", FIRST + index)


def from_torch(device: torch.device) -> int | None:
    """Which simulated device C++ means."""
    there = device.type == "cpu" and (device.index or 0) >= FIRST
    return device.index - FIRST if there else None


def cuda(device: Any = None) -> torch.device:
    """What `.cuda(device)` means."""
    if device is None:
        return torch.device("cuda", required().device)
    if isinstance(device, int):
        return torch.device("cuda", device)
    meant = torch.device(device)
    if meant.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    return meant


def host_values(tensor: Any) -> torch.Tensor:
    """The values, for a read that a GPU would wait for."""
    simulation = required()
    if simulation.races.on:
        simulation.races.used(tensor, "Tensor.item")
    simulation.synchronized(tensor.index)
    inner: torch.Tensor = tensor.inner
    return inner.detach()
