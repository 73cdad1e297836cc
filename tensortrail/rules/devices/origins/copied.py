"""The operand is a copy of a weight, made before the model was moved."""

from __future__ import annotations

from tensortrail.rules.devices.origins.case import Case, Origin, advice
from tensortrail.rules.shared.lines import where
from tensortrail.rules.timeline import Did, Event, Storage


def origin(case: Case) -> Origin | None:
    last = case.placed[-1] if case.placed else None
    number = last.facts.get("copy of") if last is not None and last.did is Did.CREATE else None
    source = case.timeline.storage(last.process, number) if last and number else None
    if last is None or source is None:
        return None
    moved = _moved_since(case, source, last)
    of = f" of `{case.timeline.name(source)}`" if case.timeline.is_named(source) else ""
    since = f", which was moved to {case.wanted} later{where(moved)}" if moved else ""
    why = f"{case.name} is a copy{of}{since}; `{last.op}` made it on {case.odd.device}{where(last)}"
    change = "make the copy after the model is moved, or move the copy too"
    return Origin(why, fixes=(advice(change),))


def _moved_since(case: Case, source: Storage, copied: Event) -> Event | None:
    for event in case.timeline.events(Did.MOVE):
        if event.other is not None and event.other.key == source.key and event.time > copied.time:
            return event
    return None
