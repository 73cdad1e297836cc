"""The time of a run begins with its first event: a program imports its libraries for a while."""

from __future__ import annotations

import linecache
import os

from tensortrail.tracer.trail.part import Part
from tensortrail.tracer.trail.source_digest import LARGEST

IMPORTS = ("import ", "from ")
MOST_ROWS = 200
"""Libraries make a few tensors when they are imported."""


def first_event(part: Part) -> float:
    """When the first event was that is not of an import, on the clock of the machine."""
    start = float(part.header.get("start") or 0)
    rows = part.rows[:MOST_ROWS]
    of_program = (row for row in rows if row[3] and not _imports(part, row[3]))
    first = next(of_program, rows[0] if rows else None)
    return start + (float(first[1]) / 1e6 if first else 0.0)


def _imports(part: Part, number: int) -> bool:
    """The user's line is an import at the top of its file."""
    row = part.sites.get(number)
    if row is None or not row[5] or part.text(row[4]) != "<module>":
        return False
    file = part.text(row[2])  # which may be anything in the trail of somebody else
    if not os.path.isfile(file) or os.path.getsize(file) > LARGEST:
        return False
    return linecache.getline(file, row[3]).startswith(IMPORTS)
