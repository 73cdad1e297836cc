"""What was computed from a tensor on meta in a recorded run."""

from __future__ import annotations

from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.lines import doer, where
from tensortrail.rules.shared.operands import Operand, called, operands
from tensortrail.rules.timeline import Did, Event, Timeline

META = "meta"


def computed_from(timeline: Timeline, event: Event, operand: Operand) -> str:
    """Which operation took a tensor on meta and gave another, before this event; "" if none."""
    for met in reversed(timeline.events(Did.MEET)):
        if met.time > event.time or met.thread != event.thread or met.facts.get("result") != META:
            continue
        given = next((each for each in operands(timeline, met) if each.device == META), None)
        if given is None or given.storage is None:
            continue
        by = put_there(timeline, given.storage, met)
        there = f", put there by {doer(by)}" if by else ""
        return (
            f"{called(timeline, operand)} was computed from {called(timeline, given)}, which "
            f"`{met.op}`{where(met)} was given on meta{there}"
        )
    return ""


def left_on_meta(timeline: Timeline, event: Event) -> str:
    """The line that offloaded weights before, whose hooks bring them for calls only."""
    for move in reversed(timeline.events(Did.MOVE)):
        there = move.storage is not None and move.storage.device == META
        if there and move.time < event.time and move.facts.get("hook"):
            hook = str(move.facts["hook"]).partition(".")[0]
            return (
                f"; since{where(move)} weights are on meta, and `{hook}` brings them only while "
                "their module is called"
            )
    return ""
