"""Events of hooks, by the fact that they tell."""

from __future__ import annotations

from collections.abc import Iterator

from tensortrail.rules.timeline import Did, Event, Timeline


def hooks_telling(timeline: Timeline, fact: str) -> Iterator[Event]:
    """What hooks have recorded with this fact, in order."""
    return (each for each in timeline.events(Did.HOOK) if fact in each.facts)
