"""Deeds are what ranks of one program are expected to do alike; some go another way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tensortrail.collector import without_collector
from tensortrail.findings import Site
from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.reading import sentences
from tensortrail.tracer.reading.process import Process
from tensortrail.tracer.reading.ranks.findings import kind
from tensortrail.tracer.reading.timeline import RunTimeline
from tensortrail.tracer.trail.layout import CODE, Row

PLACES = (Did.CREATE, Did.MOVE, Did.COPY, Did.MODULE, Did.SAVE, Did.LOAD, Did.MEET, Did.ERROR)
_PLACES = frozenset(CODE[did] for did in PLACES)
_NOWHERE: Row = (0, 0, 0)
_Key = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Deed:
    """What a rank did at a line, in one way."""

    site: Site
    way: str
    what: str
    """The first time, in a sentence."""
    count: int
    time: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that only some of the ranks did."""

    site: Site
    what: str
    ranks: tuple[str, ...]
    others: tuple[str, ...]
    count: int
    time: float


@dataclass
class Deeds:
    """Takes the ranks one after the other, and keeps of each deed the first and its ranks."""

    ranks: list[str] = field(default_factory=list)
    _seen: dict[_Key, tuple[Deed, list[str], list[int]]] = field(default_factory=dict)

    def add(self, rank: str, deeds: Iterable[Deed]) -> None:
        self.ranks.append(rank)
        for each in deeds:
            first, those, counts = self._seen.get(_key(each), (each, [], []))
            those.append(rank)
            counts.append(each.count)
            earlier = min(first, each, key=lambda deed: deed.time)
            self._seen[_key(each)] = (earlier, those, counts)

    def differences(self) -> list[Difference]:
        """What only some ranks did at a line, the first first. Lines count, not how often."""
        if len(self.ranks) < 2:
            return []
        found = [
            self._difference(first, those, sum(counts) // len(those))
            for first, those, counts in self._seen.values()
            if len(those) < len(self.ranks)
        ]
        return sorted(found, key=lambda each: each.time)

    def _difference(self, first: Deed, those: Sequence[str], count: int) -> Difference:
        did_it = set(those)
        others = tuple(each for each in self.ranks if each not in did_it)
        return Difference(first.site, first.what, tuple(those), others, count, first.time)


def _key(deed: Deed) -> _Key:
    return deed.site.file, deed.site.line, deed.way


def deeds(rank: RunTimeline, later: float = 0.0) -> list[Deed]:
    """Those of a rank, with times as seconds since the run began, `later` than its own."""
    found: dict[_Key, list[tuple[Event, int]]] = {}
    for event, count in (each for process in rank.processes for each in _first_events(process)):
        if event.site is not None:
            key = (event.site.file, event.site.line, _way(event))
            found.setdefault(key, []).append((event, count))
    return [_deed(rank, key[2], each, later) for key, each in found.items()]


def _deed(rank: RunTimeline, way: str, seen: Sequence[tuple[Event, int]], later: float) -> Deed:
    first = min((event for event, _ in seen), key=lambda event: event.time)
    assert first.site is not None
    what = sentences.sentence(first, rank.name)
    return Deed(first.site, way, what, sum(count for _, count in seen), first.time + later)


@without_collector()
def _first_events(process: Process) -> list[tuple[Event, int]]:
    """The first event of each kind, place and way of a process, and how many there are."""
    storages: Mapping[int, Row] = process.part.storages
    found: dict[tuple[int, ...], list[Row]] = {}
    for row in process.rows_of(_PLACES):
        target, source = storages.get(row[4], _NOWHERE), storages.get(row[5], _NOWHERE)
        found.setdefault((row[0], row[3], row[6], target[2], source[2]), []).append(row)
    return [(process.event(rows[0]), len(rows)) for rows in found.values()]


def _way(event: Event) -> str:
    target = kind(event.storage.device) if event.storage else ""
    source = kind(event.other.device) if event.other else ""
    return f"{event.did.value} {event.op} {source} {target}"
