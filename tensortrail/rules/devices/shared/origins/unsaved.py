"""The operand is a buffer on meta that no state dict has: it is not persistent."""

from __future__ import annotations

from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice

META = "meta"


def origin(case: Case) -> Origin | None:
    if not case.odd.unsaved or case.odd.device != META:
        return None
    why = (
        f"`{case.odd.unsaved}` was made on meta with its module, and no load fills it: it is "
        "registered with `persistent=False`, so it is in no state dict"
    )
    change = "compute it again as `__init__` does, on the device of the weights, after the load"
    return Origin(why, fixes=(advice(change),))
