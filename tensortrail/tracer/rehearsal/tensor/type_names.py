"""Types of tensors by the names that torch has for them: `torch.cuda.FloatTensor`."""

from __future__ import annotations

from typing import Any

import torch


def type_name(dtype: torch.dtype) -> str:
    """`FloatTensor`, as `torch.cuda.FloatTensor`."""
    return str(torch.empty(0, dtype=dtype).type()).rpartition(".")[2]


def dtype_named(kind: Any) -> torch.dtype:
    """The dtype of `"torch.cuda.FloatTensor"` and `torch.cuda.FloatTensor`."""
    name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
    return torch.empty(0).type(name.replace("torch.cuda.", "torch.")).dtype
