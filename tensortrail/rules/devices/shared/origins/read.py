"""The operand came out of a file, and the call that read it chose the device."""

from __future__ import annotations

from tensortrail.findings import Setting
from tensortrail.rules.devices.shared.origins.case import Case, Origin
from tensortrail.rules.shared.calls import carrier, gives
from tensortrail.rules.shared.device_names import device_here
from tensortrail.rules.shared.lines import where
from tensortrail.rules.timeline import Did, Event

MAP_LOCATION = 1


def origin(case: Case) -> Origin | None:
    last = case.placed[-1] if case.placed else None
    if last is None or last.did is not Did.LOAD:
        return None
    path = f" from {last.facts['path']}" if last.facts.get("path") else ""
    why = f"{case.name} was read onto {case.odd.device}{path} by `{last.op}`{where(last)}"
    at = carrier(case.timeline, last.site, "load")
    # A place that is asked for is a decision.
    return Origin(why, settings=() if at and gives(at, "map_location") else mapped(case, last))


def mapped(case: Case, read: Event) -> tuple[Setting, ...]:
    """The argument with which the file is read to where the other operands are."""
    if read.op != "torch.load" or read.site is None or case.wanted in ("", "cpu"):
        return ()
    if not case.timeline.line(read.site):
        return ()  # the source is another one now: what it asked for is not known
    at = carrier(case.timeline, read.site, "load")
    if at is None:
        return ()
    device = device_here(case.timeline, read.site, case.wanted)
    why = f"the result is used with tensors on {case.wanted}"
    return (Setting("torch", "map_location", device, why, "torch.load", "load", at, MAP_LOCATION),)
