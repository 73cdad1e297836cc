"""The optimizer of `torch.jit` compares the constants of a graph, to keep each of them once.

It does so by `aten::equal`, after it saw that type, size and device agree. But C++ takes simulated
tensors for the CPU's, and hands numbers that were tensors of one on as numbers."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

EQUAL = torch.ops.aten.equal.default
_asking: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
"""A script -> whether its own code calls `torch.equal`."""
_here = threading.local()


@contextmanager
def running(script: Any) -> Iterator[None]:
    """Each `equal` from C++ is meanwhile the optimizer's, unless the script calls it too."""
    if script not in _asking:
        _asking[script] = _asks(script)
    before, _here.compares = is_comparing(()), not _asking[script]
    try:
        yield
    finally:
        _here.compares = before


def is_comparing(args: Any) -> bool:
    """Numbers come from the optimizer alone: no program can call `torch.equal` with one."""
    return getattr(_here, "compares", False) or any(not isinstance(each, Tensor) for each in args)


def are_equal(first: Any, second: Any) -> bool:
    if _place(first) != _place(second):
        return False
    kind = next((each.dtype for each in (first, second) if isinstance(each, Tensor)), None)
    return bool(EQUAL(_tensor(first, kind), _tensor(second, kind)))


def _asks(script: Any) -> bool:
    graph = script.graph.copy()
    torch._C._jit_pass_inline(graph)
    return bool(graph.findAllNodes("aten::equal"))


def _place(value: Any) -> int | None:
    return value.index if isinstance(value, SimTensor) else None


def _tensor(value: Any, kind: torch.dtype | None) -> Tensor:
    if isinstance(value, SimTensor):
        return value.inner
    return value if isinstance(value, Tensor) else torch.tensor(value, dtype=kind)
