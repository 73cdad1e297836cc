"""From when to when each storage lived, and how many bytes that made on every device.

Made for millions of events: it works on the rows of the parts and never builds an Event."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter

from tensortrail.rules.timeline import Did
from tensortrail.tracer.timeline import Process, RunTimeline
from tensortrail.tracer.trail.layout import CODE, Row
from tensortrail.tracer.trail.reader import without_collector

FREE, RESIZE = CODE[Did.FREE], CODE[Did.RESIZE]


@dataclass(frozen=True, slots=True)
class Lives:
    """The storages of one process. Times are microseconds on the clock of its rows."""

    process: Process
    born: Mapping[int, int]
    """When a storage was first seen: made, moved, loaded, or already there."""
    freed: Mapping[int, int]
    resized: Mapping[int, list[tuple[int, int]]]
    """When, and the bytes from then on."""
    events: Mapping[int, int]
    """How many there are of a storage."""

    def device(self, number: int) -> int:
        """As the number of a text; 0 is the empty text."""
        row = self.process.part.storages.get(number)
        return int(row[2]) if row else 0

    def first_bytes(self, number: int) -> int:
        row = self.process.part.storages.get(number)
        return int(row[3]) if row else 0

    def last_bytes(self, number: int) -> int:
        sizes = self.resized.get(number)
        return sizes[-1][1] if sizes else self.first_bytes(number)

    def most_bytes(self, number: int) -> int:
        sizes = (size for _, size in self.resized.get(number, ()))
        return max(self.first_bytes(number), *sizes, 0)


@dataclass(frozen=True, slots=True)
class Level:
    """The bytes on one device over time: from `times[n]` on they are `nbytes[n]`."""

    times: list[float]
    nbytes: list[int]

    @property
    def peak(self) -> int:
        return max(self.nbytes, default=0)

    @property
    def peak_time(self) -> float:
        return self.times[self.nbytes.index(self.peak)] if self.nbytes else 0.0

    @property
    def last(self) -> int:
        return self.nbytes[-1] if self.nbytes else 0

    def at(self, time: float) -> int:
        place = bisect_right(self.times, time) - 1
        return self.nbytes[place] if place >= 0 else 0

    def peak_between(self, start: float, end: float) -> int:
        first, last = bisect_left(self.times, start), bisect_right(self.times, end)
        return max(self.at(start), max(self.nbytes[first:last], default=0))


@without_collector()
def lives(timeline: RunTimeline) -> list[Lives]:
    return [_lives(process) for process in timeline.processes]


def _lives(process: Process) -> Lives:
    rows = process.part.rows
    born: dict[int, int] = {0: 0}
    for row in rows:
        if row[4] not in born:
            born[row[4]] = row[1]
        if row[5] not in born:
            born[row[5]] = row[1]
    del born[0]
    events = Counter(map(itemgetter(4), rows))
    freed = {row[4]: row[1] for row in rows if row[0] == FREE}
    resized: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        if row[0] == RESIZE:
            resized[row[4]].append((row[1], _after(row)))
    return Lives(process, born, freed, dict(resized), events)


def _after(row: Row) -> int:
    facts = row[7]
    after = facts.get("after", 0) if isinstance(facts, dict) else 0
    return after if isinstance(after, int) else 0


@without_collector()
def levels(everything: list[Lives]) -> dict[str, Level]:
    """The bytes on every device over time, all processes together."""
    changes: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for of in everything:
        _gather(of, changes)
    return {device: _level(found) for device, found in sorted(changes.items())}


def _gather(of: Lives, changes: Mapping[str, dict[int, int]]) -> None:
    """Adds the bytes that came or went at each microsecond, by device."""
    part, offset = of.process.part, round(of.process.offset * 1e6)
    storages = part.storages
    devices = {row[2] for row in storages.values()}
    by_number = {device: changes[part.text(device) or "?"] for device in devices}
    for number, micros in of.born.items():
        if row := storages.get(number):
            by_number[row[2]][offset + micros] += row[3]
    for number, sizes in of.resized.items():
        if row := storages.get(number):
            size = row[3]
            for micros, after in sizes:
                by_number[row[2]][offset + micros] += after - size
                size = after
    for number, micros in of.freed.items():
        if row := storages.get(number):
            size = of.last_bytes(number) if number in of.resized else row[3]
            by_number[row[2]][offset + micros] -= size


def _level(changes: Mapping[int, int]) -> Level:
    times = sorted(changes)
    return Level(
        [micros / 1e6 for micros in times], list(accumulate(changes[micros] for micros in times))
    )
