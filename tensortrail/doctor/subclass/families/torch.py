"""Torch's own: DTensor needs a process group, so it is not here."""

from __future__ import annotations

from typing import Any

from tensortrail.doctor.subclass.families import home

LIBRARY = "torch"


def two_tensor() -> Any:
    import torch
    from torch.testing._internal.two_tensor import TwoTensor

    return TwoTensor(*(torch.randn(64, 64, device=home()) for _ in range(2)))


MAKERS = {"TwoTensor": two_tensor}
