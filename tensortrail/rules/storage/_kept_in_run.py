"""Variables that were seen to keep the graph of each step of a run."""

from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Fix, Safety
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.timeline import Event, Timeline

VALUES = "keep the value only: `.detach()` of what is added here, or `.item()`"


def kept_in_run(timeline: Timeline) -> Iterator[tuple[Event, str, Fix]]:
    for event in hooks_telling(timeline, "keeps graphs"):
        name, more, steps = (event.facts.get(each) for each in ("keeps graphs", "more", "steps"))
        said = f"`{name}` keeps the graph of each step: {more} more in {steps} steps"
        yield event, f"{said}, and memory grows with them", Fix(VALUES, Safety.DISPLAY, ())
