"""Events become flat rows, for JSON lines and Parquet; docs/trail.md describes the columns."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from tensortrail.rules.timeline import Event
from tensortrail.tracer.reading.storage_names import names
from tensortrail.tracer.reading.timeline import RunTimeline

DEEPEST = 20


class Flat(NamedTuple):
    """What there is none of is None."""

    time: float
    process: str
    thread: str | None
    phase: str | None
    did: str
    op: str | None
    storage: int | None
    other: int | None
    name: str | None
    device: str | None
    from_device: str | None
    bytes: int | None
    dtype: str | None
    shape: tuple[int, ...] | None
    file: str | None
    line: int | None
    function: str | None
    by_file: str | None
    by_line: int | None
    by_function: str | None
    facts: str | None


def flat_rows(timeline: RunTimeline) -> Iterator[Flat]:
    by_process = {process.label: names(process) for process in timeline.processes}
    for event in timeline.iterate():
        subject = event.storage or event.other
        number = subject.number if subject else 0
        yield _flat(event, by_process[event.process].get(number))


def _flat(event: Event, name: str | None) -> Flat:
    storage, other, site, by = event.storage, event.other, event.site, event.by
    return Flat(
        event.time,
        event.process,
        event.thread or None,
        event.phase or None,
        event.did.value,
        event.op or None,
        storage.number if storage else None,
        other.number if other else None,
        name,
        storage.device if storage else None,
        other.device if other else None,
        storage.nbytes if storage else None,
        (storage.dtype or None) if storage else None,
        storage.shape if storage else None,
        site.file if site else None,
        site.line if site else None,
        site.function if site else None,
        by.file if by else None,
        by.line if by else None,
        by.function if by else None,
        to_json(event.facts) if event.facts else None,
    )


def to_json(value: Any) -> str:
    """The line is ASCII, and has nothing but what every JSON reader knows."""
    return json.dumps(plain(value), separators=(",", ":"), allow_nan=False)


def plain(value: Any, depth: int = 0) -> Any:
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= DEEPEST:
        return "..."
    if isinstance(value, dict):
        return {str(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each, depth + 1) for each in value]
    return str(value)
