"""`tensortrail why`: why a tensor of a recorded run is where it is."""

from __future__ import annotations

import sys
from argparse import Namespace

from tensortrail.cli.console import say, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED


def run(options: Namespace) -> int:
    from tensortrail.cli.report import opened_run
    from tensortrail.tracer.exports.why import why

    timeline = opened_run(options.run)
    if timeline is None:
        return FAILED
    for trouble in timeline.trouble:
        say(f"tensortrail: {trouble}")
    told = why(timeline, options.tensor)
    if options.format == "json":
        write_text(told.as_json(), sys.stdout)
    elif told.tensors:
        write_text(str(told), sys.stdout)
    else:
        for line in str(told).splitlines():
            say(line)
    return CLEAN if told.tensors else FAILED
