"""The operand belongs to a layer in a plain list, which its model does not move."""

from __future__ import annotations

from collections.abc import Mapping

from tensortrail.findings import Site
from tensortrail.rules.devices.shared.origins.case import Case, Origin
from tensortrail.rules.shared.hidden_layers import container_registered
from tensortrail.rules.shared.lines import place, where
from tensortrail.rules.timeline import Did, Event


def origin(case: Case) -> Origin | None:
    holder = str(case.odd.hidden.get("holder", ""))
    if not holder:
        return None
    line = assigned(case.odd.hidden)
    moved = _moved(case)
    since = f", so the move{where(moved)} left it on {case.odd.device}" if moved else ""
    why = (
        f"`{holder}` is a plain container{place(line)}, in which `nn.Module` does not look for "
        f"layers{since}"
    )
    return Origin(why, fixes=(container_registered(case.timeline, line, holder),))


def assigned(hidden: object) -> Site | None:
    match hidden:
        case {"assigned": [str(file), int(line)]}:
            return Site(file, line)
    return None


def _moved(case: Case) -> Event | None:
    """The last move of a model before, to where the others are."""
    for event in reversed(case.timeline.events(Did.MODULE)):
        after = event.facts.get("after")
        if event.time <= case.event.time and isinstance(after, Mapping) and case.wanted in after:
            return event
    return None
