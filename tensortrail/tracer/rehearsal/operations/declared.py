"""A GPU build declares its operations; this reads how, from the list that torch ships.

The list is read only when operands lie on two devices: most runs never read it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

ENTRY = re.compile(r"^- func: ([\w.]+)\(", re.MULTILINE)
FIELD = re.compile(r"^  (device_check|structured_delegate|structured): *([\w.]+)", re.MULTILINE)
FOR_GPU = re.compile(r"^    (?:\w+, )*((?:SparseCsr)?CUDA)(?:, \w+)*:", re.MULTILINE)

INSTEAD = {
    "embedding": ("index_select", {"indices": "index"}),
    "stack": ("cat", {}),
}
"""What a GPU runs where a CPU runs another operation or a composite one, and its arguments."""
COPYING = "    CompositeExplicitAutograd:"
"""It is written for all devices: a copy is made and worked on in place, or what `out` does."""
BATCH_NORM = "native_batch_norm"


@dataclass(frozen=True)
class Kernel:
    wrapper: str
    """The function that checks devices, as messages name it."""
    strict: bool
    """All operands must lie on one device; else scalars of the host may be among them."""
    renamed: Mapping[str, str]
    """Arguments that go by another name on a GPU."""
    works_on_copy: bool = False
    """What it is given first is copied and written to."""


def kernel(func: Any, first: Tensor) -> Kernel:
    """That of the GPU for an operation on this operand, as far as torch's list tells."""
    name, overload = func._schema.name.partition("::")[2], func._schema.overload_name
    renamed: Mapping[str, str] = {}
    if name == BATCH_NORM:
        name, overload = _batch_norm(first), ""
    if name in INSTEAD:
        (name, renamed), overload = INSTEAD[name], ""
    if _entry(name, overload) is None:
        return Kernel(f"wrapper_CUDA__{name}", False, renamed)
    return _declared(name, overload, renamed)


def _declared(name: str, overload: str, renamed: Mapping[str, str]) -> Kernel:
    entry = _entry(name, overload) or ""
    fields = dict(FIELD.findall(entry))
    checked = fields.get("device_check") != "NoCheck"
    if "structured_delegate" in fields or "structured" in fields:
        suffix = ("_out" if " out)" in entry else "") + (f"_{overload}" if overload else "")
        return Kernel(f"wrapper_CUDA_{name}{suffix}", checked, renamed)
    if found := FOR_GPU.search(entry):
        return Kernel(f"wrapper_{found[1]}_{overload}_{name}", checked, renamed)
    if COPYING in entry and _entry(f"{name}_", overload):
        return replace(_declared(f"{name}_", overload, renamed), works_on_copy=True)
    out = f"{overload}_out" if overload else "out"
    if COPYING in entry and FOR_GPU.search(_entry(name, out) or ""):
        return Kernel(f"wrapper_CUDA_{out}_{name}_out", checked, renamed)
    return Kernel(f"wrapper_CUDA_{overload}_{name}", False, renamed)


def _entry(name: str, overload: str) -> str | None:
    return _entries().get(f"{name}.{overload}" if overload else name)


def _batch_norm(first: Tensor) -> str:
    """cuDNN takes no rows without a length, no bfloat16, and nothing of the host."""
    by_cudnn = first.is_cuda and first.dim() >= 3 and first.dtype != torch.bfloat16
    return "cudnn_batch_norm" if by_cudnn else BATCH_NORM


@functools.cache
def _entries() -> dict[str, str]:
    spec = find_spec("torchgen")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return {}
    starts = [(found[1], found.start()) for found in ENTRY.finditer(text)]
    ends = [*(start for _, start in starts[1:]), len(text)]
    return {name: text[start:end] for (name, start), end in zip(starts, ends, strict=True)}
