"""The operand has no values because it was computed from a tensor on meta."""

from __future__ import annotations

from tensortrail.rules.devices._computed_on_meta import META, computed_from
from tensortrail.rules.devices.origins.case import Case, Origin, advice


def origin(case: Case) -> Origin | None:
    if case.odd.device != META or case.placed:
        return None
    why = computed_from(case.timeline, case.event, case.odd)
    back = "load or bring back the values of that tensor before it is used"
    return Origin(why, fixes=(advice(back),)) if why else None
