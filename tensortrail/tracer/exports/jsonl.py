"""The JSON lines export has a line for each event, and an object on each line."""

from __future__ import annotations

import json

from tensortrail.collector import without_collector
from tensortrail.inert import inert_json
from tensortrail.tracer.exports.output import Text, opened
from tensortrail.tracer.exports.rows import flat_rows
from tensortrail.tracer.reading.timeline import RunTimeline


@without_collector()
def write(timeline: RunTimeline, out: Text) -> None:
    encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
    with opened(out) as file:
        for row in flat_rows(timeline):
            file.write(inert_json(encode(row._asdict())) + "\n")
