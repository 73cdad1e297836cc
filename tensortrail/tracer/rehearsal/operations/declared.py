"""A GPU build declares its operations; this reads how, from the list that torch ships.

The list is read only when operands lie on two devices: most runs never read it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

ENTRY = re.compile(r"^- func: ([\w.]+)\(", re.MULTILINE)
FIELD = re.compile(r"^  (device_check|structured_delegate|structured): *([\w.]+)", re.MULTILINE)
FOR_GPU = re.compile(r"^    (?:\w+, )*CUDA(?:, \w+)*:", re.MULTILINE)

INSTEAD = {
    "embedding": ("index_select", {"indices": "index"}),
    "stack": ("cat", {}),
}
"""What a GPU runs where a CPU runs another operation or a composite one, and its arguments."""
BATCH_NORMS = {"native_batch_norm", "_native_batch_norm_legit"}


@dataclass(frozen=True)
class Kernel:
    wrapper: str
    """The function that checks devices, as messages name it."""
    strict: bool
    """All operands must lie on one device; else scalars of the host may be among them."""
    renamed: Mapping[str, str]
    """Arguments that go by another name on a GPU."""


def kernel(func: Any, first: Tensor) -> Kernel:
    """That of the GPU for an operation on this operand, as far as torch's list tells."""
    name, overload = func._schema.name.partition("::")[2], func._schema.overload_name
    renamed: Mapping[str, str] = {}
    if name in BATCH_NORMS:
        name, overload = _batch_norm(first), ""
    if name in INSTEAD:
        (name, renamed), overload = INSTEAD[name], ""
    entry = _entries().get(f"{name}.{overload}" if overload else name)
    if entry is None:
        return Kernel(f"wrapper_CUDA__{name}", False, renamed)
    fields = dict(FIELD.findall(entry))
    checked = fields.get("device_check") != "NoCheck"
    if "structured_delegate" in fields or "structured" in fields:
        suffix = ("_out" if " out)" in entry else "") + (f"_{overload}" if overload else "")
        return Kernel(f"wrapper_CUDA_{name}{suffix}", checked, renamed)
    on_gpu = checked and bool(FOR_GPU.search(entry))
    return Kernel(f"wrapper_CUDA_{overload}_{name}", on_gpu, renamed)


def _batch_norm(first: Tensor) -> str:
    """cuDNN takes no rows without a length, and no bfloat16."""
    by_cudnn = first.dim() >= 3 and first.dtype != torch.bfloat16
    return "cudnn_batch_norm" if by_cudnn else "native_batch_norm"


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
