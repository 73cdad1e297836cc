"""What ended a run, where the frames of the exception told it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.timeline import Did, Event, Timeline

CAUSE, CHANGE = "cause", "change"
"""The facts that hold what is told."""


class ToldCause(NamedTuple):
    event: Event
    """At the line of the program that the exception came through."""
    cause: str
    change: str


def told_causes(timeline: Timeline) -> Iterator[ToldCause]:
    for event in timeline.events(Did.HOOK):
        if CAUSE in event.facts:
            cause, change = (sentence(event.facts.get(name, "")) for name in (CAUSE, CHANGE))
            yield ToldCause(event, cause, change)


def sentence(text: object) -> str:
    said = str(text)
    return f"{said[:1].upper()}{said[1:]}."
