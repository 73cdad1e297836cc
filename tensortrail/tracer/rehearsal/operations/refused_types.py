"""Types that a GPU's kernels refuse, in the words of these kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from torch import Tensor, ops

from tensortrail.tracer.rehearsal.tensor.type_names import type_name

NORMALIZED = ops.aten.native_layer_norm.default
LOSS = ops.aten.nll_loss_forward.default
BINCOUNT = ops.aten.bincount.default
PRODUCT = ops.aten.mm.default
NO_LABELS = re.compile(
    r"expected (?:scalar type Long but found|target dtype to be Long or Byte, but got) (\w+)"
)
WITHOUT_REDUCTION = 0


def check(func: Any, args: Sequence[Any]) -> None:
    """The CPU normalizes narrow numbers by wide weights; a GPU has one type for both."""
    if func is not NORMALIZED:
        return
    given = args[0]
    for weight in args[2:4]:
        if isinstance(weight, Tensor) and weight.dtype != given.dtype:
            raise RuntimeError(f"expected scalar type {_name(given)} but found {_name(weight)}")


def retold(func: Any, args: Sequence[Any], error: Exception) -> Exception | None:
    """The CPU's refusal as a GPU words it; None if it says the same."""
    said = str(error)
    if func is PRODUCT and "expected m1 and m2" in said:
        return RuntimeError(said.replace("m1 and m2", "mat1 and mat2"))
    if func is BINCOUNT and '"bincount_cpu"' in said:
        return NotImplementedError(said.replace("bincount_cpu", "bincount_cuda"))
    if func is LOSS and (found := NO_LABELS.search(said)):
        return NotImplementedError(f"\"{_loss_kernel(args)}\" not implemented for '{found[1]}'")
    return None


def _loss_kernel(args: Sequence[Any]) -> str:
    scores, reduction = args[0], args[3]
    if scores.dim() == 1:
        return "nll_loss_forward_reduce_cuda_kernel_1d_index"
    reduced = "no_reduce_cuda_kernel" if reduction == WITHOUT_REDUCTION else "reduce_cuda_kernel_2d"
    return f"nll_loss_forward_{reduced}_index"


def _name(tensor: Tensor) -> str:
    return type_name(tensor.dtype).removesuffix("Tensor")
