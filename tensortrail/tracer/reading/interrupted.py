"""The collective in which a process ended is known from the record beside its trail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensortrail.findings import Site
from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.reading.process import Process
from tensortrail.tracer.trail.last_state import GIVEN, stand_of


def interrupted(process: Process, began: float) -> Iterator[Event]:
    stand = stand_of(process.part.path)
    if stand is None or not stand.inside:
        return
    op, _, size = stand.op.partition(GIVEN)
    facts: dict[str, Any] = {"number": stand.count, "inside": True}
    if size:
        facts["sizes"] = [size]
    site = Site(stand.file, max(stand.line, 1)) if stand.file else None
    yield Event(
        Did.COLLECTIVE,
        max(stand.time - began, 0.0),
        process.label,
        "",
        "",
        site,
        op=op,
        facts=facts,
    )
