"""The run did not see the operand being made or moved, but a line of the program names it."""

from __future__ import annotations

from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.lines import place

_DEFINES = ("def ", "async def ")
"""How the line of a default begins, where a function is defined in one line."""


def origin(case: Case) -> Origin | None:
    if case.placed or not case.odd.behind or not case.wanted:
        return None
    site = case.odd.behind[-1]
    since = f"and nothing has moved it to {case.wanted} since"
    why = f"{case.name} comes from `{site.source}`{place(site)}, {since}"
    if site.source.startswith(_DEFINES):
        why = (
            f"{case.name} comes from the default of a parameter{place(site)}, which is made once, "
            "when the file is read"
        )
        change = f"move it to {case.wanted} where it is used, or make it in the function"
        return Origin(why, fixes=(advice(change),))
    change = f"make it on {case.wanted}{place(site)}, or move it there before it is used"
    return Origin(why, fixes=(advice(change),))
