"""Tensors of a run are found by what people call them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from tensortrail.rules.timeline import Storage
from tensortrail.tracer.reading.assigned_names import assigned
from tensortrail.tracer.reading.process import LINEAGE_CODES, Process
from tensortrail.tracer.reading.storage_names import names
from tensortrail.tracer.reading.timeline import RunTimeline

MOST_ALIKE = 5


def tensors_called(timeline: RunTimeline, asked: str) -> list[Storage]:
    """Where tensors of that name lay last. `model.embed.weight` and `embed.weight` are names of
    `Net.embed.weight` too, if nothing is called so exactly."""
    for fits in (_is, _ends, _same_path):
        found = [
            storage
            for process in timeline.processes
            for storage in _last_of(process, {n for n, name in names(process).items()
                                              if fits(name, asked)})
        ]  # fmt: skip
        if found:
            return found
    return []


def alike(timeline: RunTimeline, asked: str) -> Sequence[str]:
    """Names that may have been meant."""
    known = {name for process in timeline.processes for name in names(process).values()}
    known |= assigned(timeline).keys()
    last = asked.rpartition(".")[2]
    close = difflib.get_close_matches(asked, known, MOST_ALIKE, 0.5)
    return close or sorted(each for each in known if last and last in each)[:MOST_ALIKE]


def _last_of(process: Process, numbers: set[int]) -> Iterator[Storage]:
    """Without those whose values went on into another one of them."""
    left = {
        row[5]
        for number in numbers
        for row in process.by_storage.get(number, ())
        if row[0] in LINEAGE_CODES and row[4] in numbers and row[4] != row[5]
    }
    for number in sorted(numbers - left or numbers):
        if (storage := process.storage(number)) is not None:
            yield storage


def _is(name: str, asked: str) -> bool:
    return name == asked


def _ends(name: str, asked: str) -> bool:
    return name.endswith(f".{asked}")


def _same_path(name: str, asked: str) -> bool:
    """Below the model, which has one name as a class and another one as a variable."""
    path, wanted = name.partition(".")[2], asked.partition(".")[2]
    return bool(wanted) and (path == wanted or path.endswith(f".{wanted}"))
