"""The operand has no values because it was computed from a tensor on meta."""

from __future__ import annotations

from tensortrail.rules.devices.shared.in_runs.computed_on_meta import (
    META,
    computed_from,
    left_on_meta,
)
from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.lines import place


def origin(case: Case) -> Origin | None:
    if case.odd.device != META or case.placed:
        return None
    why = computed_from(case.timeline, case.event, case.odd)
    back = "load or bring back the values of that tensor before it is used"
    if why:
        return Origin(why, fixes=(advice(back),))
    offloaded = left_on_meta(case.timeline, case.event)
    if not offloaded or not case.odd.behind:
        return None
    site = case.odd.behind[-1]
    why = f"{case.name} comes from `{site.source}`{place(site)}{offloaded}"
    within = (
        "read the weight while it is there: `with accelerate.utils.align_module_device(module):`"
    )
    return Origin(why, fixes=(advice(within),))
