"""Types and sizes that a GPU's kernels refuse, in the words of these kernels."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal.operations import gpu_kernels
from tensortrail.tracer.rehearsal.operations.gpu_kernels import named

aten = torch.ops.aten
LOSS = aten.nll_loss_forward.default
MISSING = re.compile(r"\"([\w.]+)\" not implemented for '(\w+)'")
NO_LABELS = re.compile(
    r"expected (?:scalar type Long but found|target dtype to be Long or Byte, but got) (\w+)"
)
WITHOUT_REDUCTION = 0
SCALED_BY = 16
"""Sizes of matrices in float8 that cuBLAS multiplies."""
Check = Callable[[Any, Sequence[Any]], None]


@functools.cache
def check_of(func: Any) -> Check | None:
    """What a GPU refuses before it computes; None for most operations."""
    if func in OWN:
        return OWN[func]
    if gpu_kernels.absence(func) is not None:
        return _not_there
    return _check_types if gpu_kernels.lacks(func) else None


def _not_there(func: Any, args: Sequence[Any]) -> None:
    absence = gpu_kernels.absence(func)
    assert absence is not None
    raise absence


def _check_types(func: Any, args: Sequence[Any]) -> None:
    """For nothing no kernel is asked; several types of numbers become the widest."""
    lacked = gpu_kernels.lacks(func)
    first = next(each for each in args if isinstance(each, Tensor))
    if first.dtype not in lacked or not first.numel():
        return
    numbers = [each for each in args if isinstance(each, Tensor) and each.is_floating_point()]
    if all(each.dtype == first.dtype for each in numbers):
        raise gpu_kernels.refusal(func, named(first.dtype))


def _check_reduced(func: Any, args: Sequence[Any]) -> None:
    if "sum" not in args[4:5]:
        _check_types(func, args)


def _check_normalized(func: Any, args: Sequence[Any]) -> None:
    """The CPU normalizes narrow numbers by wide weights; a GPU has one type for both."""
    given = args[0]
    for weight in args[2:4]:
        if isinstance(weight, Tensor) and weight.dtype != given.dtype:
            raise RuntimeError(
                f"expected scalar type {named(given.dtype)} but found {named(weight.dtype)}"
            )


def _check_scaled(func: Any, args: Sequence[Any]) -> None:
    """The CPU's kernel takes any sizes."""
    one, other = args[:2]
    if one.shape[1] % SCALED_BY:
        shape = "x".join(map(str, one.shape))
        raise RuntimeError(
            f"Expected trailing dimension of mat1 to be divisible by {SCALED_BY} but got mat1 "
            f"shape: ({shape})."
        )
    if any(size % SCALED_BY for size in other.shape):
        shape = "x".join(map(str, other.shape))
        raise RuntimeError(f"mat2 shape ({shape}) must be divisible by {SCALED_BY}")


OWN: dict[Any, Check] = {
    aten.native_layer_norm.default: _check_normalized,
    aten._scaled_mm.default: _check_scaled,
    aten.scatter_reduce.two: _check_reduced,
    aten.scatter_reduce_.two: _check_reduced,
}


def retold(func: Any, args: Sequence[Any], error: Exception) -> Exception | None:
    """The CPU's refusal as a GPU words it; None if it says the same."""
    said = str(error)
    if "expected m1 and m2" in said:
        return RuntimeError(said.replace("m1 and m2", "mat1 and mat2"))
    if "MKL FFT doesn't support tensors of" in said:
        return RuntimeError(said.replace("MKL FFT", "cuFFT").replace("tensors of", "tensor of"))
    if func is LOSS and (found := NO_LABELS.search(said)):
        return NotImplementedError(
            f"\"{_loss_kernel(args)}_index\" not implemented for '{found[1]}'"
        )
    if (found := MISSING.search(said)) is None:
        return None
    if func is LOSS:
        return NotImplementedError(f"\"{_loss_kernel(args)}\" not implemented for '{found[2]}'")
    return gpu_kernels.refusal(func, found[2], found[1])


def _loss_kernel(args: Sequence[Any]) -> str:
    scores, reduction = args[0], args[3]
    if scores.dim() == 1:
        return "nll_loss_forward_reduce_cuda_kernel_1d"
    reduced = "no_reduce_cuda_kernel" if reduction == WITHOUT_REDUCTION else "reduce_cuda_kernel_2d"
    return f"nll_loss_forward_{reduced}"
