"""What a GPU's kernels lack and are called; the table is read when something is computed."""

from __future__ import annotations

import functools
from typing import Any

import torch

from tensortrail.toml import own_table
from tensortrail.tracer.rehearsal.tensor.type_names import type_name

WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
LACKED = {
    "whole": WHOLE,
    "bool": (torch.bool,),
    "half": (torch.float16,),
    "narrow": (torch.float16, torch.bfloat16),
}
ABSENT = (
    "Could not run '{}' with arguments from the '{}' backend. This could be because the operator "
    "doesn't exist for this backend, or was omitted during the selective/custom build process (if "
    "using custom build)."
)


@functools.cache
def lacks(func: Any) -> frozenset[torch.dtype]:
    """Types that it takes on the CPU and not on a GPU."""
    name, lists = _name(func), _table()["lacks"]
    return frozenset(
        dtype for kind, dtypes in LACKED.items() if name in lists[kind] for dtype in dtypes
    )


def refusal(func: Any, kind: str, cpu_kernel: str | None = None) -> Exception:
    """Of a type by its name; the kernel of the CPU is the one that refused it, if it did."""
    name = _name(func)
    kernel: str | None = _table()["kernels"].get(name)
    if kernel is None and cpu_kernel is None:
        kernel = f"{name.removeprefix('special_')}_cuda"
    if kernel is None:
        kernel = str(cpu_kernel).replace("_vml_cpu", "_cpu").replace("_cpu", "_cuda")
    if "{}" in kernel:
        return RuntimeError(kernel.format(kind))
    return missing(kernel, kind)


def missing(kernel: str, kind: str) -> Exception:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{kind}'")


def computed_in(func: Any, kind: str) -> torch.dtype | None:
    """Another type that the CPU has a kernel for, where a GPU has one for this type."""
    other = _table()["computed_in"].get(_name(func), {}).get(kind)
    return None if other is None else getattr(torch, other)


def absence(func: Any) -> Exception | None:
    """What is said of an operation that a GPU does not have."""
    backend = _table()["absent"].get(_name(func))
    if backend is None:
        return None
    overload = func._schema.overload_name
    full = func._schema.name + (f".{overload}" if overload else "")
    return absent(full, backend)


def absent(operation: str, backend: str) -> Exception:
    return NotImplementedError(ABSENT.format(operation, backend))


def named(dtype: torch.dtype) -> str:
    """As messages of kernels name it: `Long`."""
    return type_name(dtype).removesuffix("Tensor")


def _name(func: Any) -> str:
    name = str(func._schema.name).removeprefix("aten::")
    return name if name.endswith("__") else name.removesuffix("_")


@functools.cache
def _table() -> dict[str, Any]:
    return own_table(__package__, "gpu_kernels.toml")
