"""The names of storages: those they were given, or those that their values had elsewhere."""

from __future__ import annotations

from tensortrail.tracer.reading.process import LINEAGE_CODES, Process

FSDP = "FSDP"
MOST_STEPS = 20
"""From the storage of a value to the one it was in before or afterwards."""


def name_of(process: Process, number: int) -> str:
    """The name of one storage; of a part of a weight, which part."""
    part, weight = process.parts_of_weights.get(number, ("", 0))
    if part and (whole := _given_name(process, weight)):
        return f"{part} of {whole}"
    return _given_name(process, number)


def _given_name(process: Process, number: int) -> str:
    """The storage's own name, or that of one its values were in before or afterwards."""
    found = ""
    for _ in range(MOST_STEPS):
        if found := process.own_name(number):
            break
        before = process.before(number)
        if not before or before == number:
            return ""
        number = before
    for _ in range(MOST_STEPS):
        number = process.then(number)
        if not number:
            break
        found = _fuller(found, process.own_name(number))
    return found


def names(process: Process) -> dict[int, str]:
    """Of all storages at once: those that were given one, and those their bytes were moved to."""
    part = process.part
    found = {number: part.text(given[-1]) for number, given in part.names.items()}
    for row in part.rows:
        if row[0] in LINEAGE_CODES and row[4] not in found and row[5] in found:
            found[row[4]] = found[row[5]]
    for row in reversed(part.rows):
        if row[0] in LINEAGE_CODES and row[4] in found and row[5] in found:
            found[row[5]] = _fuller(found[row[5]], found[row[4]])
    for number, (what, weight) in process.parts_of_weights.items():
        if weight in found:
            found[number] = f"{what} of {found[weight]}"
    return found


def _fuller(name: str, later: str) -> str:
    """What a tensor is called: `Net.head.weight` if the `Linear.weight` was to become that, and
    `net.head.weight` if that is where the program has it."""
    path = name.partition(".")[2]
    longer = later.count(".") - name.count(".")
    if not path or longer < 0 or not later.endswith(f".{path}"):
        return name
    by_class = later.startswith(FSDP) and not longer  # which it makes of the module's own class
    return name if by_class else later
