"""The tensors an operation was given, and what is told of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from tensortrail.tracer.identity.inner_tensors import PLAIN, computes, device_of, is_real

Args = tuple[Any, ...]
MOST_OPERANDS = 64


def tensors_in(args: Args, kwargs: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors among the arguments, with the place of each; looks one list deep."""
    for where, value in (*enumerate(args), *kwargs.items()):
        if isinstance(value, torch.Tensor):
            yield str(where), value
        elif type(value) in (list, tuple):
            for place, each in enumerate(value):
                if isinstance(each, torch.Tensor):
                    yield f"{where}[{place}]", each


def operand(where: str, tensor: torch.Tensor, entry: Any) -> dict[str, Any]:
    traced = not is_real(tensor)
    with torch._C.DisableTorchFunction():
        return {
            "arg": where,
            "device": str(tensor.device if traced else device_of(tensor)),
            "dtype": str(tensor.dtype)[6:],
            "shape": _shape(tensor, entry),
            "type": "" if traced or type(tensor) in PLAIN else type(tensor).__name__,
            "storage": entry.number if entry is not None else 0,
            **({"gradient": True} if tensor.requires_grad else {}),
        }


def _shape(tensor: torch.Tensor, entry: Any) -> list[int]:
    if computes(tensor) and is_real(tensor):
        return list(entry.described.shape) if entry is not None else []
    try:
        return list(tensor.shape)
    except RuntimeError:
        return []  # nested
