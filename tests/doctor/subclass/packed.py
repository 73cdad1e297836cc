"""A wrapper subclass without a fault, to which tests give one."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

aten = torch.ops.aten


class Packed(torch.Tensor):  # type: ignore[misc]
    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor, **said: Any) -> Any:
        said = {"device": inner.device, "dtype": inner.dtype, "strides": inner.stride(), **said}
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, **said)

    def __init__(self, inner: torch.Tensor, **said: Any) -> None:
        self.inner = inner

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @classmethod
    def __tensor_unflatten__(cls, inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return cls(inner["inner"])

    def dequantize(self) -> Any:
        return self.inner.clone()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        answer = cls.answer(func, args, kwargs)
        if answer is not None:
            return answer
        plain = pytree.tree_map_only(Packed, lambda t: t.inner, (args, kwargs))
        result = func(*plain[0], **plain[1])
        if func in (aten.copy_.default, aten.fill_.Scalar, aten.zero_.default):
            return args[0]
        return pytree.tree_map_only(torch.Tensor, cls, result)

    @classmethod
    def answer(cls, func: Any, args: Any, kwargs: Any) -> Any:
        """A fault, in subclasses."""


class Forgets(Packed):
    """A fresh tensor of it is a plain one."""

    @classmethod
    def answer(cls, func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten.new_empty.default:
            return func(args[0].inner, *args[1:], **kwargs)
        return None


def forgetful() -> Forgets:
    return Forgets(torch.randn(8, 8))


def weight() -> Packed:
    return Packed(torch.randn(8, 8))


INEVITABLE = ("share_memory", "parameter.data = ...", "weights_only=True", "dcp.load")
"""No class is safe from these without code of its own: torch kills the process, sets `.data` of
the outer tensor only, and trusts no class it was not told of."""
