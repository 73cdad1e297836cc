"""The weights whose gradients a gradient scaler refused, as they are half precision."""

from __future__ import annotations

from traceback import walk_tb
from typing import Any

import torch
from torch.optim import Optimizer

from tensortrail.tracer.identity.storages import Storages

REFUSED = "Attempting to unscale FP16 gradients"
MOST = 50


def half_weights(error: BaseException, storages: Storages) -> dict[str, Any] | None:
    """By the optimizer in a frame of the scaler."""
    if not isinstance(error, ValueError) or REFUSED not in str(error):
        return None
    for frame, _ in walk_tb(error.__traceback__):
        optimizer = frame.f_locals.get("optimizer")
        if isinstance(optimizer, Optimizer):
            groups = (each["params"] for each in optimizer.param_groups)
            half = [each for group in groups for each in group if each.dtype is torch.float16]
            entries = [storages.entry(each) for each in half[:MOST]]
            numbers = [each.number for each in entries if each is not None]
            return {"half": numbers, "count": len(half)}
    return None
