"""JSON lines: an object a line, an event an object."""

from __future__ import annotations

from tensortrail.tracer.exports.flat import flat_rows, to_json
from tensortrail.tracer.exports.opening import Text, opened
from tensortrail.tracer.timeline import RunTimeline


def write(timeline: RunTimeline, out: Text) -> None:
    with opened(out) as file:
        for row in flat_rows(timeline):
            file.write(to_json(row._asdict()) + "\n")
