"""Kernels that a GPU has and the CPU lacks are computed in a wider type, and rounded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from tensortrail.tracer.rehearsal.operations import refused_types
from tensortrail.tracer.rehearsal.tensor.type_names import type_name

MISSING = re.compile(r"not implemented for '(\w+)'")
WIDER = {"Half": torch.float32, "BFloat16": torch.float32}
WIDER_HERE = {"histc": {"Int": torch.float32, "Long": torch.float64, "Short": torch.float32}}
"""Operations that take integers on a GPU only."""

_DYNAMIC = (
    torch.ops.quantized.linear_dynamic,
    torch.ops.quantized.linear_relu_dynamic,
    torch.ops.quantized.linear_dynamic_fp16,
)
ONLY_ON_THE_CPU = {torch.ops.aten._sparse_mm_reduce_impl.default: "SparseCsrCUDA"} | {
    each.default: "CUDA" for each in _DYNAMIC
}
"""With the name of what a GPU lacks. What the first would do for a tensor that needs a gradient
cannot be asked for from here either."""
INSTEAD = {torch.ops.aten._efficientzerotensor.default: torch.ops.aten.zeros.default}
"""Zeros without memory, which torch follows with a key that simulated tensors do not have."""
PRODUCTS = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default}
"""Of numbers with a point only."""
SCALED_BY = 16
"""Sizes of matrices in float8 that cuBLAS multiplies."""
LAZY = tuple(
    getattr(torch._C.DispatchKey, name) for name in ("Conjugate", "Negative", "ZeroTensor")
)


@contextmanager
def conjugates_resolved() -> Iterator[None]:
    """Below a dispatch mode torch leaves `x.conj()` inside of a kernel as it is, unconjugated."""
    excluded, set_excluded = (
        torch._C._dispatch_tls_is_dispatch_key_excluded,
        torch._C._dispatch_tls_set_dispatch_key_excluded,
    )
    before = [excluded(key) for key in LAZY]
    for key in LAZY:
        set_excluded(key, False)
    try:
        yield
    finally:
        for key, was in zip(LAZY, before, strict=True):
            set_excluded(key, was)


def is_complex(named: Sequence[tuple[str, Tensor]]) -> bool:
    return bool(named) and named[0][1].dtype.is_complex


def compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What the GPU's kernel would give."""
    if func in ONLY_ON_THE_CPU:
        raise NotImplementedError(
            f"Could not run '{func._schema.name}' with arguments from the "
            f"'{ONLY_ON_THE_CPU[func]}' backend."
        )
    if func is torch.ops.aten._scaled_mm.default:
        _check_scaled(*args[:2])
    if func in PRODUCTS:
        _check_product(args[0])
    refused_types.check(func, args)
    try:
        return func(*args, **kwargs)
    except (NotImplementedError, RuntimeError) as error:
        if (told := refused_types.retold(func, args, error)) is not None:
            raise told from None
        found = MISSING.search(str(error))
        name = func._schema.name.partition("::")[2]
        wider = {**WIDER, **WIDER_HERE.get(name, {})}.get(found[1]) if found else None
        if wider is None:
            raise
        return _widened(func, args, kwargs, wider)


def _check_scaled(one: Tensor, other: Tensor) -> None:
    """The CPU's kernel takes any sizes."""
    if one.shape[1] % SCALED_BY:
        shape = "x".join(map(str, one.shape))
        raise RuntimeError(
            f"Expected trailing dimension of mat1 to be divisible by {SCALED_BY} but got mat1 "
            f"shape: ({shape})."
        )
    if any(size % SCALED_BY for size in other.shape):
        shape = "x".join(map(str, other.shape))
        raise RuntimeError(f"mat2 shape ({shape}) must be divisible by {SCALED_BY}")


def _check_product(one: Tensor) -> None:
    if not (one.dtype.is_floating_point or one.dtype.is_complex):
        name = type_name(one.dtype).removesuffix("Tensor")
        raise NotImplementedError(f"\"addmm_cuda\" not implemented for '{name}'")


def _widened(func: Any, args: Any, kwargs: dict[str, Any], wider: torch.dtype) -> Any:
    narrow = next(
        tensor.dtype
        for tensor in (*_flat(args), *_flat(kwargs))
        if tensor.dtype != wider and not tensor.dtype.is_complex
    )

    def widen(tensor: Tensor) -> Tensor:
        return tensor.to(wider) if tensor.dtype == narrow else tensor

    given = tree_map_only(Tensor, widen, args)
    result = func(*given, **tree_map_only(Tensor, widen, kwargs))
    written = [
        (old, new)
        for argument, old, new in zip(func._schema.arguments, args, given, strict=False)
        if argument.is_write and isinstance(old, Tensor) and old is not new
    ]
    for old, new in written:
        old.copy_(new)

    def narrowed(tensor: Tensor) -> Tensor:
        for old, new in written:
            if tensor is new:
                return old
        return tensor.to(narrow) if tensor.dtype == wider else tensor

    return tree_map_only(Tensor, narrowed, result)


def _flat(values: Any) -> list[Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(values) if isinstance(leaf, Tensor)]
