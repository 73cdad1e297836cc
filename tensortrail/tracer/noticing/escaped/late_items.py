"""A loader that gave up waiting for a batch: an item takes longer than its timeout."""

from __future__ import annotations

import re
from typing import Any

from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import at, data_set_of, giver_of, told

_GAVE_UP = re.compile(r"DataLoader timed out after ([\d.]{1,20}) seconds")


def late_item(error: BaseException, _: Storages) -> dict[str, Any] | None:
    found = _GAVE_UP.search(str(error)) if isinstance(error, RuntimeError) else None
    if found is None:
        return None
    data = data_set_of(error)
    slow = ""
    if given := giver_of(data):
        slow = f": `{type(data).__name__}.{given[1].name}`{at(given[0], given[1].lineno)}"
    return told(
        f"a worker takes longer than `timeout={found[1]}` of the DataLoader for a batch{slow}",
        "give the loader a longer `timeout=`, or 0 to wait as long as it takes; if a worker hangs, "
        "find the line with `py-spy dump --pid` of the worker",
    )
