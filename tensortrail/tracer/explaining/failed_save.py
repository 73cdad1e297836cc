"""A save that failed is explained by the findings of its run, which say more than its message."""

from __future__ import annotations

import os

from tensortrail.findings import Finding
from tensortrail.rules import all_rules
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import RunTimeline

SAVE = "save_pretrained"
CODES = ("SHD407", "SHD403", "SHD401", "SHD402", "SHD405")
"""The ones that tell most stand first."""


def saves(error: BaseException) -> bool:
    """The error left a library's `save_pretrained`."""
    return _line_that_saves(error) is not None


def finding_of_save(error: BaseException, timeline: RunTimeline) -> Finding | None:
    line = _line_that_saves(error)
    if line is None:
        return None
    rules = all_rules()
    found = findings(timeline, [rules[code]() for code in CODES if code in rules]).findings
    there = {
        each.code: each
        for each in found
        if (os.path.abspath(each.site.file), each.site.line) == line
    }
    return next((there[code] for code in CODES if code in there), None)


def _line_that_saves(error: BaseException) -> tuple[str, int] | None:
    """The user's line that called a library's `save_pretrained`, if the error left it."""
    line: tuple[str, int] | None = None
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if OWNERS[code.co_filename] == USER:
            line = os.path.abspath(code.co_filename), step.tb_lineno
        elif code.co_name == SAVE:
            return line
        step = step.tb_next
    return None
