"""Subclasses of tensors that leave every operation to torch keep their class on any device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.simulated import REAL_CLASS, SimTensor, class_for, made

BASE = torch._C.TensorBase


def install(replaced: Replacements) -> None:
    replaced.put(Tensor, "_make_subclass", staticmethod(make_subclass))
    replaced.put(Tensor, "as_subclass", as_subclass)
    replaced.put(Tensor, "__new__", staticmethod(new))


def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """`Subclass(values)`: below a mode C++ has a plain tensor, and refuses to change its class."""
    plain = BASE.__new__(Tensor, *args, **kwargs)
    return plain if cls is Tensor else as_subclass(plain, cls)


def make_subclass(cls: Any, data: Any, require_grad: bool = False, **options: Any) -> Any:
    if isinstance(data, SimTensor):
        return made(cls, data, require_grad)
    return BASE._make_subclass(on_host(cls), data, require_grad, **options)


def as_subclass(self: Any, cls: Any) -> Any:
    """It has the history of `self`."""
    if not isinstance(self, SimTensor):
        return BASE.as_subclass(self, on_host(cls))
    kind = class_for(cls)
    alias = torch.ops.aten.alias.default(self)
    REAL_CLASS.__set__(alias, kind)
    return alias


def on_host(cls: Any) -> Any:
    """The program's own class, whose instances are on the CPU."""
    return vars(cls).get("simulates", cls)
