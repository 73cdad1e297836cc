"""A module owns its parameters and buffers, and those of the modules below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.nn import Module

Slot = tuple[str, dict[str, Any], str]
"""The dotted path of a parameter or buffer, and the dict and the key that hold it."""


def slots(module: Module, root: str = "") -> Iterator[Slot]:
    """Those of the module and of the modules below it that hold a tensor."""
    for path, each in module.named_modules():
        prefix = "".join(part + "." for part in (root, path) if part)
        for tensors in (each._parameters, each._buffers):
            for key, tensor in tensors.items():
                if tensor is not None:
                    yield prefix + key, tensors, key


def owned(module: Module, root: str = "") -> Iterator[tuple[str, Any]]:
    """Each parameter and buffer of the module and those below it, by its dotted path."""
    return ((name, tensors[key]) for name, tensors, key in slots(module, root))
