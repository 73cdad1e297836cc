"""Files that a recorded run has written itself."""

from __future__ import annotations

from collections.abc import Iterator

from tensortrail.rules.timeline import Did, Event, Timeline


def saves_before(timeline: Timeline, event: Event) -> Iterator[Event]:
    """What was written to the file that something happened to, the last first."""
    path = event.facts.get("path")
    for each in reversed(timeline.events(Did.SAVE)):
        if each.time <= event.time and each.facts.get("path") == path:
            yield each


def last_save(timeline: Timeline, path: str, name: str) -> Event | None:
    """The last time that something was written to the file under a key that ends so."""
    for each in reversed(timeline.events(Did.SAVE)):
        key = str(each.facts.get("key", ""))
        if path and each.facts.get("path") == path and key.endswith(name):
            return each
    return None
