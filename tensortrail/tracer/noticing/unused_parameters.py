"""The parameters that data parallelism waited for in vain, by the numbers in its message."""

from __future__ import annotations

import re
from traceback import walk_tb
from typing import Any

from torch.nn.parallel import DistributedDataParallel

_NUMBERS = re.compile(r"did not receive grad for rank \d+: ((?:\d+ ?)+)")


def unused_parameters(error: BaseException) -> dict[str, Any] | None:
    found = _NUMBERS.search(str(error)) if isinstance(error, RuntimeError) else None
    if found is None:
        return None
    for frame, _ in walk_tb(error.__traceback__):
        model = frame.f_locals.get("self")
        if isinstance(model, DistributedDataParallel):
            trained = [n for n, each in model.module.named_parameters() if each.requires_grad]
            numbers = [int(each) for each in found[1].split()]
            names = [trained[each] for each in numbers if each < len(trained)]
            return {"without gradients": names[:50], "count": len(numbers)}
    return None
