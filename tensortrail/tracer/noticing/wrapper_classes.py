"""Where the class of a wrapper tensor defines what, as far as Python code does."""

from __future__ import annotations

import inspect
from types import CodeType, FunctionType
from typing import Any

import torch

from tensortrail.tracer.identity.sites import OURS, function_name, owner


def class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def overrides(kind: type, name: str) -> type | None:
    """The class that defines a method of torch.Tensor anew, in Python."""
    owner_of = next((each for each in kind.__mro__ if name in vars(each)), None)
    if owner_of in (None, torch.Tensor, torch._C.TensorBase):
        return None
    return owner_of if isinstance(vars(owner_of)[name], FunctionType) else None


def place_of(kind: type, name: str) -> list[Any]:
    """File, first and last line and name of a method that Python code defines; else empty."""
    found = inspect.getattr_static(kind, name, None)
    for inner in ("__func__", "__wrapped__"):
        found = getattr(found, inner, found)
    code = getattr(found, "__code__", None)
    if not isinstance(code, CodeType) or owner(code.co_filename) == OURS:
        return []
    lines = [line for _, _, line in code.co_lines() if line]
    return [code.co_filename, code.co_firstlineno, max(lines), function_name(code)]
