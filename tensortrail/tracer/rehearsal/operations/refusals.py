"""What a GPU build says of operands that lie on different devices, whatever the operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

Place = tuple[str, Tensor, str]
"""An operand by its name in the schema, and where it lies."""
Arguments = Sequence[Any]


def refuse(argument: str, place: str, home: str, method: str) -> None:
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but got {argument} is on {place}, "
        f"different from other tensors on {home} (when checking argument in method {method})"
    )


def two_devices(home: str, place: str) -> None:
    raise RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{home} and {place}!"
    )
