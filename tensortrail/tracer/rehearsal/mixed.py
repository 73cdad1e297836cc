"""Autocast: that of the simulated device is the CPU's, with the GPU's default type."""

from __future__ import annotations

from typing import Any

import torch

from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.simulation import Simulation


def install(simulation: Simulation, replaced: Replacements) -> None:
    begin = torch.autocast.__init__

    def __init__(
        self: Any,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: Any = None,
    ) -> None:
        if device_type == "cuda":
            device_type = "cpu"
            dtype = dtype or torch.float16
        begin(self, device_type, dtype, enabled, cache_enabled)

    replaced.put(torch.autocast, "__init__", __init__)
    state = {"dtype": torch.float16}

    def get_dtype(device_type: str = "cuda") -> Any:
        return state["dtype"] if device_type == "cuda" else plain_get(device_type)

    plain_get = torch.get_autocast_dtype
    replaced.put(torch, "get_autocast_dtype", get_dtype)
    replaced.put(torch, "get_autocast_gpu_dtype", get_dtype)
