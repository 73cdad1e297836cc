"""Kernels that a GPU has and the CPU lacks are computed in a wider type, and rounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from tensortrail.tracer.rehearsal.operations import gpu_kernels
from tensortrail.tracer.rehearsal.operations.refused_types import MISSING, check_of, retold
from tensortrail.tracer.rehearsal.operations.synced_norms import FORMULAS
from tensortrail.tracer.rehearsal.tensor.type_names import dtype_named

WIDER = {"Half": torch.float32, "BFloat16": torch.float32}
INSTEAD = {torch.ops.aten._efficientzerotensor.default: torch.ops.aten.zeros.default}
"""Zeros without memory, which torch follows with a key that simulated tensors do not have."""
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
    if (check := check_of(func)) is not None:
        check(func, args)
    func = FORMULAS.get(func, func)
    try:
        return func(*args, **kwargs)
    except (NotImplementedError, RuntimeError) as error:
        if (found := MISSING.search(str(error))) and (wider := _wider(func, found[2])):
            with suppress(NotImplementedError):  # then it takes no such numbers at all
                narrow = dtype_named(f"torch.{found[2]}Tensor")
                return _widened(func, args, kwargs, narrow, wider)
        if (told := retold(func, args, error)) is not None:
            raise told from None
        raise


def _wider(func: Any, kind: str) -> torch.dtype | None:
    return WIDER.get(kind) or gpu_kernels.computed_in(func, kind)


def _widened(
    func: Any, args: Any, kwargs: dict[str, Any], narrow: torch.dtype, wider: torch.dtype
) -> Any:
    def widen(tensor: Tensor) -> Tensor:
        return tensor.to(wider) if tensor.dtype == narrow else tensor

    names = [argument.name for argument in func._schema.arguments]
    before = {**dict(zip(names, args, strict=False)), **kwargs}
    given = tree_map_only(Tensor, widen, before)
    result = func(*list(given.values())[: len(args)], **{name: given[name] for name in kwargs})
    written = [
        (before[argument.name], given[argument.name])
        for argument in func._schema.arguments
        if argument.is_write and isinstance(before.get(argument.name), Tensor)
    ]
    for old, new in written:
        old.copy_(new)

    def narrowed(tensor: Tensor) -> Tensor:
        for old, new in written:
            if tensor is new:
                return old
        return tensor.to(narrow) if tensor.dtype == wider else tensor

    return tree_map_only(Tensor, narrowed, result)
