"""The parameters that data parallelism waited for in vain, by the numbers in its message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from traceback import walk_tb
from typing import Any

from torch.nn import Parameter
from torch.nn.parallel import DistributedDataParallel

from tensortrail.tracer.identity.storages import Storages

_NUMBERS = re.compile(r"did not receive grad for rank \d+: ((?:\d+ ?)+)")
MOST = 50


def unused_parameters(error: BaseException, storages: Storages) -> dict[str, Any] | None:
    found = _NUMBERS.search(str(error)) if isinstance(error, RuntimeError) else None
    if found is None:
        return None
    for frame, _ in walk_tb(error.__traceback__):
        model = frame.f_locals.get("self")
        if isinstance(model, DistributedDataParallel):
            numbers = [int(each) for each in found[1].split()]
            trained = [each for each in model.module.named_parameters() if each[1].requires_grad]
            waited = [trained[each] for each in numbers if each < len(trained)]
            entries = map(storages.entry, _put_in(model, waited))
            return {
                "without gradients": [name for name, _ in waited][:MOST],
                "count": len(numbers),
                "put in": [each.number for each in entries if each is not None][:MOST],
            }
    return None


def _put_in(
    model: DistributedDataParallel, waited: list[tuple[str, Parameter]]
) -> Iterator[Parameter]:
    """Those that the model has in the place of the ones that the wrapper knows."""
    known = {id(each) for each in model._module_parameters}
    yield from (weight for _, weight in waited if id(weight) not in known)
