"""Each storage lived from one time to another; this sums their bytes on every device.

Made for millions of events: one pass over the rows of a part, and no Event is built."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from tensortrail.collector import without_collector
from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.process import Process
from tensortrail.tracer.reading.timeline import RunTimeline
from tensortrail.tracer.trail.layout import CODE, Row

FREE, RESIZE = CODE[Did.FREE], CODE[Did.RESIZE]
ENDS_OR_RESIZES = frozenset((FREE, RESIZE))
_UNKNOWN: Row = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Level:
    """The bytes on one device over time: from `times[n]` on they are `nbytes[n]`.
    Times are microseconds since the first event of the run."""

    times: list[int] = field(default_factory=list)
    nbytes: list[int] = field(default_factory=list)

    @property
    def peak(self) -> int:
        return max(self.nbytes, default=0)

    @property
    def peak_time(self) -> float:
        return self.times[self.nbytes.index(self.peak)] / 1e6 if self.nbytes else 0.0

    def at(self, seconds: float) -> int:
        return self._before(bisect_right(self.times, seconds * 1e6))

    def peak_between(self, start: float, end: float) -> int:
        """The most bytes at any time from `start` to `end`, in seconds."""
        first, last = bisect_right(self.times, start * 1e6), bisect_right(self.times, end * 1e6)
        return max(self._before(first), max(self.nbytes[first:last], default=0))

    def _before(self, place: int) -> int:
        return self.nbytes[place - 1] if place else 0


@dataclass(frozen=True, slots=True)
class Lives:
    """The storages of one process. Times are microseconds on the clock of its rows."""

    process: Process
    born: Mapping[int, int]
    """When a storage was first seen: made, moved, loaded, or already there."""
    freed: Mapping[int, int]
    resized: Mapping[int, int]
    """The bytes after the last resize."""
    levels: Mapping[int, Level]
    """By device, as the number of a text."""
    rank: str = ""
    """Whose devices these are; empty where there is one rank only."""

    def place(self, device: int) -> str:
        """What the device is called: that of another rank is another one."""
        name = self.process.part.text(device) or "?"
        return f"{name} ({self.rank})" if self.rank else name

    def device(self, number: int) -> int:
        return int(self.process.part.storages.get(number, _UNKNOWN)[2])

    def last_bytes(self, number: int) -> int:
        described = self.process.part.storages.get(number, _UNKNOWN)
        return int(self.resized.get(number, described[3]))


@without_collector()
def lives(timeline: RunTimeline) -> list[Lives]:
    ranks = timeline.by_rank()
    return [
        replace(_lives(process), rank=rank.label if len(ranks) > 1 else "")
        for rank in ranks
        for process in rank.processes
    ]


def _lives(process: Process) -> Lives:
    storages = process.part.storages
    # What a forked process was born with is its parent's, until the child makes its own.
    own = process.part.header.get("first_storage") or 0
    inherited = dict.fromkeys((number for number in storages if number < own), 0)
    born: dict[int, int] = {0: 0, **inherited}
    freed: dict[int, int] = {}
    resized: dict[int, int] = {}
    levels: dict[int, Level] = defaultdict(Level)
    shift = round(process.offset * 1e6)

    def change(device: int, micros: int, nbytes: int) -> None:
        level = levels[device]
        level.nbytes.append(level.nbytes[-1] + nbytes if level.nbytes else nbytes)
        level.times.append(shift + micros)

    for row in process.part.rows:
        code, micros, number = row[0], row[1], row[4]
        for each in (row[5], number):
            if each not in born:
                born[each] = micros
                if described := storages.get(each):
                    change(described[2], micros, described[3])
        if code in ENDS_OR_RESIZES:
            after = 0 if code == FREE else _after(row)
            described = storages.get(number)
            if described and number not in freed and number not in inherited:
                before = resized[number] if number in resized else described[3]
                change(described[2], micros, after - before)
            if code == FREE:
                freed[number] = micros
            else:
                resized[number] = after
    for number in {0, *inherited}:
        del born[number]
    return Lives(process, born, freed, resized, levels)


def _after(row: Row) -> int:
    after = row[7].get("after") if isinstance(row[7], dict) else None
    return after if isinstance(after, int) else 0


@without_collector()
def levels(everything: Iterable[Lives]) -> dict[str, Level]:
    """The bytes on every device over time, all processes of a rank together."""
    found: dict[str, list[Level]] = defaultdict(list)
    for of in everything:
        for device, level in of.levels.items():
            found[of.place(device)].append(level)
    return {device: _together(each) for device, each in sorted(found.items())}


def _together(several: list[Level]) -> Level:
    if len(several) == 1:
        return several[0]
    changes: list[tuple[int, int]] = []
    for level in several:
        changes += zip(
            level.times, (now - before for before, now in pairwise([0, *level.nbytes])), strict=True
        )
    # At one instant, what went makes room for what came.
    changes.sort()
    return Level([time for time, _ in changes], list(accumulate(change for _, change in changes)))
