"""What an operation calls its arguments, for those that were given by position."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.overrides import get_testing_overrides

OF_TENSORS = "Tensor."


def argument(op: str, place: str) -> str:
    """`weight`, `tensors[1]`, or `argument 2` where the operation has no name for it."""
    head, bracket, rest = place.partition("[")
    if head.isdigit():
        number, names = int(head), _parameters(op)
        head = names[number] if number < len(names) else f"argument {number + 1}"
    return head + bracket + rest


@lru_cache(maxsize=1024)
def _parameters(op: str) -> Sequence[str]:
    try:
        if op.startswith(OF_TENSORS):
            return ("self", *_signature(getattr(torch.Tensor, op.removeprefix(OF_TENSORS)))[1:])
        module, _, name = op.rpartition(".")
        return _signature(getattr(sys.modules.get(module), name))  # nothing is imported for it
    except (AttributeError, ValueError, TypeError):
        return ()


def _signature(function: Any) -> Sequence[str]:
    """Functions written in C++ have none to ask: torch lists those for its own tests."""
    listed = get_testing_overrides().get(function, function)
    return tuple(inspect.signature(listed).parameters)
