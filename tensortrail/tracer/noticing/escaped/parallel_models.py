"""A model that DataParallel refused, as it is not on its first GPU."""

from __future__ import annotations

from traceback import walk_tb
from typing import Any

from torch.nn import DataParallel

from tensortrail.tracer.identity.module_tensors import owned
from tensortrail.tracer.identity.storages import Storages

REFUSED = "module must have its parameters and buffers on device"
MOST = 50


def parallel_model(error: BaseException, storages: Storages) -> dict[str, Any] | None:
    if not isinstance(error, RuntimeError) or REFUSED not in str(error):
        return None
    for frame, _ in walk_tb(error.__traceback__):
        model = frame.f_locals.get("self")
        if isinstance(model, DataParallel):
            first = str(model.src_device_obj)
            tensors = list(owned(model.module))
            others = [each for each in tensors if str(each[1].device) != first]
            entries = [storages.entry(tensor) for _, tensor in others[:MOST]]
            return {
                "parallel on": first,
                "others": [name for name, _ in others[:MOST]],
                "devices": sorted({str(tensor.device) for _, tensor in others}),
                "count": len(others),
                "all": len(others) == len(tensors),
                "weights": [each.number for each in entries if each is not None],
                "model": type(model.module).__name__,
            }
    return None
