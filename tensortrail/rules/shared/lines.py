"""Lines of source that events of a run stand at, as rules name them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from tensortrail.findings import Site
from tensortrail.rules.timeline import Event


def line_of(event: Event) -> Site | None:
    """The user's line; the library's where no user's is known."""
    return event.site or event.by


def by_line(events: Iterable[Event]) -> list[list[Event]]:
    """The events of each line, in the order in which the lines came up."""
    found: dict[tuple[str, int], list[Event]] = {}
    for event in events:
        at = line_of(event)
        found.setdefault((at.file, at.line) if at else ("", 0), []).append(event)
    return list(found.values())


def reader_of(event: Event) -> Site | None:
    """The innermost frame: the one that got the answer."""
    return event.by or event.site


def place(site: Site | None) -> str:
    """To be put behind what happened there; nothing where that is not known."""
    return f" at {os.path.basename(site.file)}:{site.line}" if site else ""


def place_told(line: Any) -> str:
    """The same of a line that is a fact of an event: its file, its number and more, or nothing."""
    file, number, *_ = line or ("", 0)
    return place(Site(str(file), int(number))) if file else ""


def where(event: Event | None) -> str:
    return place(line_of(event)) if event is not None else ""


def doer(event: Event) -> str:
    """`Tensor.to` at train.py:12"""
    return f"`{event.op}`{where(event)}"
