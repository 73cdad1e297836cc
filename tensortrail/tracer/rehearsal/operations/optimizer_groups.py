"""Optimizers group tensors by device and type; torch asks C++, which sees no device of ours."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunction

from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

STEP_TYPES = (torch.float32, torch.float64)
plain_grouped = torch._C._group_tensors_by_device_and_dtype


def grouped(lists: Any, with_indices: bool = False) -> Any:
    """Tensors of optimizers by device and type: torch asks C++, which sees no device of ours."""
    tensors = [tensor for row in lists for tensor in row]
    if not any(isinstance(tensor, SimTensor) for tensor in tensors):
        return plain_grouped(lists, with_indices)
    with DisableTorchFunction():
        return _grouped(lists, with_indices)


def _grouped(lists: Any, with_indices: bool) -> Any:
    groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
    for at, first in enumerate(lists[0]):
        key = first.device, first.dtype
        rows, indices = groups.setdefault(key, ([[] for _ in lists], []))
        if with_indices:
            indices.append(at)
        for row, given in zip(rows, lists, strict=True):
            if given:
                if given[at] is not None:
                    _check_grouped(given[at], *key)
                row.append(given[at])
    return groups


def _check_grouped(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> None:
    counts = tensor.dtype in STEP_TYPES
    there = tensor.device == device and (tensor.dtype in (dtype, torch.bfloat16) or counts)
    if not (there or (tensor.device.type == "cpu" and counts)):
        raise RuntimeError(
            "Tensors of the same index must be on the same device and the same dtype except `step` "
            "tensors that can be CPU and float32/64, and optimizer states that can be bfloat16 for "
            "mixed-precision training"
        )
