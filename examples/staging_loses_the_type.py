"""Checkpoint staging asks for `new_empty`; this subclass answers with a plain tensor."""

import torch

aten = torch.ops.aten
_kept = {aten.empty_like.default, aten.new_zeros.default, aten.split.Tensor, aten.as_strided.default}


class ScaledWeight(torch.Tensor):
    @staticmethod
    def __new__(cls, inner: torch.Tensor):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: torch.Tensor):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [each.inner if isinstance(each, cls) else each for each in args]
        out = func(*plain, **(kwargs or {}))
        if func not in _kept:
            return out
        return cls(out)
