"""A weight or buffer whose elements share memory, into which nothing could be loaded."""

from __future__ import annotations

import re
from traceback import walk_tb
from typing import Any

from torch import Tensor
from torch.nn import Module

from tensortrail.tracer.identity.storages import Storages

_REFUSED = re.compile(
    r'copying the parameter named "([^"]{1,200})"[\s\S]{0,500}?more than one element of the '
    r"written-to tensor refers to a single memory location"
)


def spread_weight(error: BaseException, storages: Storages) -> dict[str, Any] | None:
    """By its name in the message and the model in a frame of its `load_state_dict`."""
    found = _REFUSED.search(str(error)) if isinstance(error, RuntimeError) else None
    for frame, _ in walk_tb(error.__traceback__) if found else ():
        model = frame.f_locals.get("self")
        if isinstance(model, Module) and found is not None:
            kept = dict([*model.named_parameters(), *model.named_buffers()]).get(found[1])
            if kept is not None and _is_spread(kept):
                return {"spread": found[1], "storage": storages.number(kept)}
    return None


def _is_spread(tensor: Tensor) -> bool:
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return any(size > 1 and step == 0 for size, step in steps)
