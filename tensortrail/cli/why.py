"""`tensortrail why`: why a tensor of a recorded run is where it is."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from tensortrail.cli.console import say, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED

if TYPE_CHECKING:
    from tensortrail.tracer.reading.timeline import RunTimeline


def run(options: Namespace) -> int:
    from tensortrail.cli.recorded_run import opened_run, run_path
    from tensortrail.tracer.exports.why import why
    from tensortrail.tracer.trail.run_files import DEFAULT_DIRECTORY

    if options.tensor is None and not os.path.exists(run_path(options.run)):
        options.run, options.tensor = DEFAULT_DIRECTORY, options.run
    timeline = opened_run(options.run)
    if timeline is None:
        return FAILED
    for trouble in timeline.trouble:
        say(f"tensortrail: {trouble}")
    if options.tensor is None:
        return _list(timeline, options.format)
    told = why(timeline, options.tensor)
    if options.format == "json":
        write_text(told.as_json(), sys.stdout)
    elif told.tensors:
        write_text(str(told), sys.stdout)
    else:
        for line in str(told).splitlines():
            say(line)
    return CLEAN if told.tensors else FAILED


def _list(timeline: RunTimeline, format: str) -> int:
    from tensortrail.tracer.exports.known_tensors import as_dict, known_tensors, lines

    known = known_tensors(timeline)
    data = format == "json"
    write_text(
        json.dumps(as_dict(known), indent=2) if data else "\n".join(lines(known)), sys.stdout
    )
    return CLEAN
