"""All storages get their names at once; `Timeline.name` answers for one."""

from __future__ import annotations

from tensortrail.tracer.reading.process import LINEAGE_CODES, Process
from tensortrail.tracer.reading.timeline import fuller


def names(process: Process) -> dict[int, str]:
    """Storages that were given a name have one, and those their bytes were moved to."""
    part = process.part
    found = {number: part.text(given[-1]) for number, given in part.names.items()}
    for row in part.rows:
        if row[0] in LINEAGE_CODES and row[4] not in found and row[5] in found:
            found[row[4]] = found[row[5]]
    for row in reversed(part.rows):
        if row[0] in LINEAGE_CODES and row[4] in found and row[5] in found:
            found[row[5]] = fuller(found[row[5]], found[row[4]])
    for number, (what, weight) in process.parts_of_weights.items():
        if weight in found:
            found[number] = f"{what} of {found[weight]}"
    return found
