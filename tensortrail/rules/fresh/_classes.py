"""What a run tells of wrapper classes: one finding for each class, at the first place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from tensortrail.findings import Finding, Site, Step
from tensortrail.rules import Did, Event, Timeline
from tensortrail.rules.shared.lines import line_of


def questions(timeline: Timeline, *asked: str) -> Iterator[Event]:
    for event in timeline.events(Did.WRAPPER):
        if event.facts.get("question") in asked and not _is_torch(event):
            yield event


def by_class(events: Iterable[Event]) -> list[list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(str(event.facts.get("class")), []).append(event)
    return list(found.values())


def class_of(event: Event) -> str:
    return short(event.facts.get("class"))


def short(name: object) -> str:
    return str(name or "").rpartition(".")[2]


def with_class(timeline: Timeline, finding: Finding, events: list[Event], text: str) -> Finding:
    """The finding with the place in the class that decides, and the other lines it came up on."""
    lines = {(at.file, at.line): at for each in events if (at := line_of(each))}
    lines.pop((finding.site.file, finding.site.line), None)
    place = defined_at(timeline, events[0])
    steps = (*finding.trail, Step(place, text)) if place else finding.trail
    return dataclasses.replace(finding, trail=steps, siblings=tuple(lines.values()))


def defined_at(timeline: Timeline, event: Event) -> Site | None:
    match event.facts.get("defined"):
        case [str(file), int(first), int(last), str(function)]:
            around = Site(file, first, end_line=last, function=function)
            made = timeline.call(around, "_make_wrapper_subclass")
            return made or dataclasses.replace(around, source=timeline.line(around))
    return None


def _is_torch(event: Event) -> bool:
    """Torch's own subclasses turn into plain tensors by design (results of collectives)."""
    return str(event.facts.get("class", "")).startswith("torch.")
