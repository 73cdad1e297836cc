"""Subclasses of tensors that leave every operation to torch: on the CPU they compute as they are.

A simulated tensor has a class of its own and cannot be another one's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal.lacks import NotRehearsed
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

DISABLED = torch._C._disabled_torch_dispatch_impl


def is_plain(kind: Any) -> bool:
    """A tensor, a parameter, or a class of theirs that leaves operations to torch."""
    return bool(kind.__torch_dispatch__ is DISABLED)


def install(replaced: Replacements) -> None:
    base = torch._C.TensorBase

    def make_subclass(cls: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        _refuse(cls, data)
        return base._make_subclass(cls, data, *args, **kwargs)

    def as_subclass(self: Any, cls: Any) -> Any:
        _refuse(cls, self)
        return base.as_subclass(self, cls)

    replaced.put(Tensor, "_make_subclass", staticmethod(make_subclass))
    replaced.put(Tensor, "as_subclass", as_subclass)


def _refuse(cls: Any, data: Any) -> None:
    if isinstance(data, SimTensor) and not isinstance(data, cls):
        raise NotRehearsed(f"a tensor on a simulated device cannot become a `{cls.__name__}`")
