"""The operand is the module's own, as `functional_call` was not given another one for it."""

from __future__ import annotations

from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.lines import place


def origin(case: Case) -> Origin | None:
    if case.odd.left_out is None:
        return None
    name, site = case.odd.left_out
    why = (
        f"`functional_call`{place(site)} was not given `{name}`, so the one of the module itself "
        f"is used, which is on {case.odd.device}"
    )
    change = f"give it `{name}` too: its second argument may be a tuple, parameters and buffers"
    return Origin(why, fixes=(advice(change),))
