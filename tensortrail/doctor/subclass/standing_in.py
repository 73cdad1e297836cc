"""Pinned memory where there is no accelerator: plain tensors answer, wrappers are asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tensortrail.doctor.subclass.looks import PLAIN


class _Pinning(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.pinned: list[torch.Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if args and isinstance(args[0], torch.Tensor) and type(args[0]) not in PLAIN:
            return NotImplemented  # the class answers, and comes back with what is in it
        if func in (torch.ops.aten._pin_memory.default, torch.ops.aten.pin_memory.default):
            return self._keep(args[0].clone())
        if func is torch.ops.aten.is_pinned.default:
            return any(each is args[0] for each in self.pinned)
        if kwargs.get("pin_memory"):
            return self._keep(func(*args, **{**kwargs, "pin_memory": False}))
        return func(*args, **kwargs)

    def _keep(self, tensor: torch.Tensor) -> torch.Tensor:
        self.pinned.append(tensor)
        return tensor


@contextmanager
def pinning() -> Iterator[list[torch.Tensor]]:
    """Lists what was pinned. With an accelerator, memory is pinned by it."""
    mode = _Pinning()
    with mode:
        yield mode.pinned
