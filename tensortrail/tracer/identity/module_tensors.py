"""A module owns its parameters and buffers, and those of the modules below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.nn import Module


def owned(module: Module, root: str = "") -> Iterator[tuple[str, Any]]:
    """Each parameter and buffer of the module and those below it, by its dotted path."""
    for prefix, each in module.named_modules():
        for tensors in (each._parameters, each._buffers):
            for key, tensor in tensors.items():
                if tensor is not None:
                    yield ".".join(part for part in (root, prefix, key) if part), tensor
