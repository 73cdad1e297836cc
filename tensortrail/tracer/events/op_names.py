"""Operations have names that people know."""

from __future__ import annotations

from typing import Any

import torch


def op_name(op: Any) -> str:
    """`torch.nn.functional.embedding`, `Tensor.to`, `Tensor.data` ..."""
    if isinstance(op, torch._ops.OpOverload):
        return str(op)  # aten.sum.dim_IntList
    owner = getattr(op, "__self__", None)
    name = getattr(op, "__name__", None) or str(op)
    if name in ("__get__", "__set__", "__delete__") and owner is not None:
        return f"Tensor.{getattr(owner, '__name__', '?')}"
    qualified = str(getattr(op, "__qualname__", name))
    if qualified.startswith(("TensorBase.", "Tensor.")):
        return f"Tensor.{name}"
    module = getattr(op, "__module__", None) or "torch"
    if qualified.startswith("_VariableFunctions") or module.startswith("torch._C"):
        module = "torch.nn.functional" if module == "torch._C._nn" else "torch"
    return f"{module}.{name}"
