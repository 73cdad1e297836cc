"""A summary tells who moved what, what lies where, in which phases, and what went wrong.

Times are seconds since its first event."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from tensortrail.collector import without_collector
from tensortrail.findings import Site
from tensortrail.rules.timeline import Did, Event, Storage
from tensortrail.tracer.reading.live_bytes import Level, Lives, levels, lives
from tensortrail.tracer.reading.phases import Phase, phases
from tensortrail.tracer.reading.process import Process
from tensortrail.tracer.reading.timeline import RunTimeline
from tensortrail.tracer.trail.layout import CODE, EVENT, KINDS, Row

POINTS = 600
LARGEST = 50


@dataclass(frozen=True, slots=True)
class LineMoves:
    """The moves one line asked for, from one device to another."""

    site: Site | None
    by: Site | None
    op: str
    source: str
    target: str
    count: int
    nbytes: int
    first: float


@dataclass(frozen=True, slots=True)
class DeviceUse:
    device: str
    count: int
    """Storages alive at the end."""
    nbytes: int
    """Bytes of these."""
    peak: int
    peak_time: float
    largest: tuple[Storage, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Bytes on one device, by as many steps of equal length as there are items."""

    device: str
    peaks: tuple[int, ...]
    """The most bytes within each step."""


class Summary:
    """Everything below is computed when it is first asked for, from the rows of the run."""

    def __init__(self, timeline: RunTimeline) -> None:
        self.timeline = timeline

    @cached_property
    def lives(self) -> list[Lives]:
        return lives(self.timeline)

    @cached_property
    def levels(self) -> dict[str, Level]:
        return levels(self.lives)

    @cached_property
    def seconds(self) -> float:
        return max(
            (p.offset + max(map(_MICROS, p.part.rows), default=0) / 1e6 for p in self._processes),
            default=0.0,
        )

    @cached_property
    def counts(self) -> dict[Did, int]:
        """How many events there are of each kind."""
        codes = sum((Counter(map(_CODE, p.part.rows)) for p in self._processes), Counter[int]())
        return {KINDS[code - EVENT]: count for code, count in sorted(codes.items())}

    @cached_property
    def moves_by_line(self) -> list[LineMoves]:
        """Most bytes first. Copies between devices are moves too."""
        return moves_by_line(self.timeline)

    @cached_property
    def alive_by_device(self) -> list[DeviceUse]:
        """What was never seen freed; most bytes first."""
        return alive_by_device(self.lives, self.levels)

    def bytes_over_time(self, points: int = POINTS) -> list[Curve]:
        return bytes_over_time(self.levels, self.seconds, points)

    @cached_property
    def phases(self) -> list[Phase]:
        return phases(self.timeline, self.levels, self.seconds)

    @cached_property
    def meetings(self) -> Sequence[Event]:
        return self.timeline.events(Did.MEET)

    @cached_property
    def errors(self) -> Sequence[Event]:
        return self.timeline.events(Did.ERROR)

    @property
    def _processes(self) -> list[Process]:
        return self.timeline.processes


_CODE, _MICROS = itemgetter(0), itemgetter(1)
_NOWHERE: Row = (0, 0, 0, 0)
_MOVE, _COPY = CODE[Did.MOVE], CODE[Did.COPY]


@without_collector()
def moves_by_line(timeline: RunTimeline) -> list[LineMoves]:
    groups: dict[tuple[Site | None, Site | None, str, str, str], list[LineMoves]]
    groups = defaultdict(list)
    for process in timeline.processes:
        for each in _moves_of(process):
            groups[each.site, each.by, each.op, each.source, each.target].append(each)
    found = [
        LineMoves(
            *key,
            count=sum(each.count for each in group),
            nbytes=sum(each.nbytes for each in group),
            first=min(each.first for each in group),
        )
        for key, group in groups.items()
    ]
    return sorted(found, key=lambda each: (-each.nbytes, each.first))


def _moves_of(process: Process) -> Iterator[LineMoves]:
    storages = process.part.storages
    totals: dict[tuple[int, int, int, int], tuple[Row, list[int]]] = {}
    for row in [row for row in process.part.rows if row[0] == _MOVE or row[0] == _COPY]:
        target, source = storages.get(row[4], _NOWHERE), storages.get(row[5], _NOWHERE)
        if row[0] == _COPY and target[2] == source[2]:
            continue
        key = (row[3], row[6], source[2], target[2])
        nbytes = min(target[3], source[3]) or max(target[3], source[3])
        if key in totals:
            totals[key][1].append(nbytes)
        else:
            totals[key] = (row, [nbytes])
    for first, sizes in totals.values():
        event = process.event(first)
        came_from = event.other.device if event.other else "?"
        went_to = event.storage.device if event.storage else "?"
        count, nbytes = len(sizes), sum(sizes)
        yield LineMoves(
            event.site, event.by, event.op, came_from, went_to, count, nbytes, event.time
        )


@without_collector()
def alive_by_device(
    everything: Sequence[Lives], on_device: Mapping[str, Level], largest: int = LARGEST
) -> list[DeviceUse]:
    alive: dict[str, list[tuple[int, int, Process]]] = defaultdict(list)
    for of in everything:
        by_device: dict[int, list[tuple[int, int, Process]]] = defaultdict(list)
        for number in of.born.keys() - of.freed.keys():
            by_device[of.device(number)].append((of.last_bytes(number), number, of.process))
        for device_text, found_there in by_device.items():
            alive[of.place(device_text)] += found_there
    found = []
    for device in alive.keys() | on_device.keys():
        living, level = alive[device], on_device.get(device, Level())
        top = heapq.nlargest(largest, living, key=lambda each: (each[0], -each[1]))
        storages = tuple(s for _, number, process in top if (s := process.storage(number)))
        nbytes = sum(size for size, _, _ in living)
        found.append(DeviceUse(device, len(living), nbytes, level.peak, level.peak_time, storages))
    return sorted(found, key=lambda each: (-each.nbytes, -each.peak, each.device))


def bytes_over_time(
    on_device: Mapping[str, Level], seconds: float, points: int = POINTS
) -> list[Curve]:
    width = seconds / points
    return [
        Curve(
            device,
            tuple(level.peak_between(step * width, (step + 1) * width) for step in range(points)),
        )
        for device, level in on_device.items()
    ]
