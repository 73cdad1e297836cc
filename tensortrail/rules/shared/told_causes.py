"""What ended a run, where an explanation told the cause in its own words and named no finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from tensortrail.findings import Setting, Site
from tensortrail.rules.timeline import Did, Event, Storage, Timeline

CAUSE, CHANGE, SETTINGS, ABOUT = "cause", "change", "settings", "about"
"""The facts that hold what is told."""
WEIGHTS = "weights of the cause"
"""The names of those that a cause is about; an error that the run reports of them is its root."""


class ToldCause(NamedTuple):
    event: Event
    """At the line of the program that the exception came through."""
    cause: str
    change: str
    settings: Sequence[Setting]
    about: Storage | None
    """What the failed operation was given that lay where it should not."""


def facts_of(cause: str, change: str, settings: Sequence[Setting], about: int) -> dict[str, Any]:
    """What a recording keeps of it."""
    facts = {CAUSE: cause, CHANGE: change, SETTINGS: [*map(asdict, settings)], ABOUT: about}
    return {name: value for name, value in facts.items() if value}


def told_causes(timeline: Timeline) -> Iterator[ToldCause]:
    for event in timeline.events(Did.HOOK):
        if CAUSE in event.facts and (event.site or event.by):
            if timeline.in_passed_test(event):
                continue
            about = event.facts.get(ABOUT)
            yield ToldCause(
                event,
                str(event.facts[CAUSE]).rstrip("."),
                str(event.facts.get(CHANGE, "")).rstrip("."),
                [_setting(each) for each in event.facts.get(SETTINGS, ())],
                timeline.storage(event.process, about) if isinstance(about, int) else None,
            )


def _setting(told: Mapping[str, Any]) -> Setting:
    at = told.get("at")
    return Setting(**{**told, "at": Site(**at) if at else None})


def sentence(text: str) -> str:
    """What findings say without an end, as an explanation says it."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."
