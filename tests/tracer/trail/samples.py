"""A small trail with a row of every kind, and what readers make of any file."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any

import msgpack

from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.exports import jsonl, perfetto
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import RunTimeline, open_run
from tensortrail.tracer.trail.layout import CODE, FRAME, MAGIC
from tensortrail.tracer.trail.reader import NotATrail
from tensortrail.tracer.trail.writer import TrailWriter

HEADER = {"version": "0", "run": "r", "pid": 7}


def written(path: Path, limit: int = 1 << 30) -> TrailWriter:
    writer = TrailWriter(str(path), HEADER, limit)
    context = writer.context("MainThread", "train")
    site = writer.site("train.py", 3, "main", ("torch/nn.py", 9, "to"))
    source = writer.storage("cpu", 400, "float32", (10, 10), "")
    target = writer.storage("meta", 400, "float32", (10, 10), "Wrapper")
    writer.name(source, "model.weight")
    for did in Did:
        facts = {"before": 1, "after": 2, "operands": [{"arg": "0"}], "devices": ["cpu", "meta"]}
        writer.event(CODE[did], context, site, target, source, writer.text("op"), facts)
    writer.event(CODE[Did.FREE], 0, 0, target)
    return writer


def whole(path: Path) -> bytes:
    written(path).close()
    return path.read_bytes()


def frame(rows: Any) -> bytes:
    return sealed(zlib.compress(rows if isinstance(rows, bytes) else msgpack.packb(rows)))


def sealed(payload: bytes) -> bytes:
    return FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def trail_of(path: Path, *rows: Any) -> Path:
    """A file whose frames hold these, whatever they are."""
    path.write_bytes(MAGIC + frame([HEADER]) + b"".join(map(frame, rows)))
    return path


def looked_at(path: Path) -> RunTimeline | None:
    """Everything that reads a trail, on this one; None if it says that it is none."""
    try:
        timeline = open_run(path)
    except NotATrail:
        return None
    events: list[Event] = list(timeline.events())
    assert [event.time for event in events] == sorted(event.time for event in events)
    for event in events:
        for storage in (event.storage, event.other):
            if storage is not None:
                timeline.name(storage)
                timeline.history(storage, event)
        if event.site is not None:
            assert isinstance(timeline.line(event.site), str)
    timeline.steps(events)
    summary = Summary(timeline)
    assert sum(summary.counts.values()) == len(events)
    assert len(summary.bytes_over_time(10)) == len(summary.levels)
    asked = (summary.moves_by_line, summary.alive_by_device, summary.phases)
    assert all(isinstance(each, list) for each in asked)
    assert len(summary.meetings) + len(summary.errors) <= len(events)
    jsonl.write(timeline, io.StringIO())
    perfetto.write(timeline, io.StringIO())
    return timeline
