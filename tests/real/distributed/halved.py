"""A weight that FSDP2 gathers in half the bytes: a wrapper with all-gather hooks of its own."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree


class Halved(torch.Tensor):  # type: ignore[misc]
    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), dtype=inner.dtype, device=inner.device
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["inner"], None

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = pytree.tree_map_only(cls, lambda each: each.inner, (args, kwargs or {}))
        result = func(*plain[0], **plain[1])
        if func is torch.ops.aten.copy_.default:
            return args[0]
        return pytree.tree_map_only(torch.Tensor, cls, result)

    def fsdp_pre_all_gather(self, mesh: Any) -> Any:
        return (self.inner.bfloat16(),), None

    def fsdp_post_all_gather(
        self, gathered: Any, metadata: Any, dtype: torch.dtype, *, out: Any = None
    ) -> Any:
        (half,) = gathered
        if out is not None:
            with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(out):
                out.copy_(half)
            return None
        whole = half.to(dtype)
        return whole, (whole,)
