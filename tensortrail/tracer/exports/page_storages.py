"""The page has room for some storages; this chooses them and tells what happened to them."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter

from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.live_bytes import Lives
from tensortrail.tracer.reading.process import LINEAGE
from tensortrail.tracer.reading.storage_names import names
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.trail.layout import CODE, Row

MOST = 4000
BUSIEST = 500
ALIVE_BY_DEVICE = 20
FIRST, LAST = 16, 8
"""How many events of a storage are told."""

_LINEAGE = frozenset(CODE[did] for did in LINEAGE)
_PASSED_ON = _LINEAGE | {CODE[Did.COPY]}

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The storages of one process that are on the page."""

    lives: Lives
    rows: Mapping[int, list[Row]]
    """The first and last events of each, as what they happened to or as where bytes came from."""
    counts: Mapping[int, int]
    """How many events each has in all."""
    before: Mapping[int, int]
    """The storage whose bytes it went on with, if there is one."""


def choose(summary: Summary, most: int = MOST) -> list[Chosen]:
    """The storages of errors and meetings, the busiest, the largest with and without a name."""
    wanted = set(_spoken_of(summary, most // 4))
    wanted |= {s.key for use in summary.alive_by_device for s in use.largest[:ALIVE_BY_DEVICE]}
    counts = {
        of.process.label: Counter(map(itemgetter(4), of.process.part.rows)) for of in summary.lives
    }
    busy = (
        (count, label, number)
        for label, each in counts.items()
        for number, count in each.items()
        if number
    )
    wanted |= {
        (label, number) for _, label, number in heapq.nlargest(min(BUSIEST, most // 4), busy)
    }
    named = {of.process.label: names(of.process) for of in summary.lives}
    with_name = (each for each in _sizes(summary.lives) if each[2] in named[each[1]])
    for room, largest in ((most * 3 // 4, with_name), (most, _sizes(summary.lives))):
        for _, label, number in heapq.nlargest(room, largest):
            if len(wanted) >= room:
                break
            wanted.add((label, number))
    return [
        _followed(of, {number for label, number in wanted if label == of.process.label})
        for of in summary.lives
    ]


def _spoken_of(summary: Summary, most: int) -> list[Key]:
    events = (*summary.errors, *summary.meetings)
    return [s.key for event in events for s in (event.storage, event.other) if s][:most]


def _sizes(everything: list[Lives]) -> Iterator[tuple[int, str, int]]:
    for of in everything:
        label, born = of.process.label, of.born
        for number, row in of.process.part.storages.items():
            if number in born:
                yield row[3], label, number


def _followed(of: Lives, numbers: set[int]) -> Chosen:
    rows = of.process.part.rows
    before: dict[int, int] = {}
    for row in rows:
        if row[0] in _LINEAGE and row[5]:
            before.setdefault(row[4], row[5])
    for number in list(numbers):
        while (number := before.get(number, 0)) and number not in numbers:
            numbers.add(number)
    told: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row[4] in numbers:
            told[row[4]].append(row)
        if row[5] in numbers and row[0] in _PASSED_ON:
            told[row[5]].append(row)
    counts = {number: len(told[number]) for number in numbers}
    kept = {number: _ends(each) for number, each in told.items()}
    return Chosen(of, kept, counts, {n: before[n] for n in numbers if n in before})


def _ends(rows: list[Row]) -> list[Row]:
    return rows if len(rows) <= FIRST + LAST else rows[:FIRST] + rows[-LAST:]
