"""The ranks of a run are compared: what they share, and where one of them went another way."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tensortrail.findings import Finding, Site
from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.reading import sentences
from tensortrail.tracer.reading.timeline import Process, RunTimeline
from tensortrail.tracer.trail.last_state import Stand, stand_of
from tensortrail.tracer.trail.layout import CODE, Row
from tensortrail.tracer.trail.reader import without_collector

PLACES = (Did.CREATE, Did.MOVE, Did.COPY, Did.MODULE, Did.SAVE, Did.LOAD, Did.MEET, Did.ERROR)
"""What ranks of one program are expected to do alike."""
_PLACES = frozenset(CODE[did] for did in PLACES)
_NOWHERE: Row = (0, 0, 0)
_NAMES = re.compile(r"`([\w.]+)`")
MOST_NAMES = 3


def ranks_of(timeline: RunTimeline) -> list[RunTimeline]:
    """The ranks, without the process that only started them."""
    return [each for each in timeline.by_rank() if each.rank is not None]


# --- findings ----------------------------------------------------------------------------
def merged(parts: Sequence[tuple[RunTimeline, Sequence[Finding]]]) -> list[Finding]:
    """Findings of all ranks: what several say of one line is one, and what one says is its own."""
    together: dict[tuple[str, str, int, int], list[tuple[RunTimeline, Finding]]] = {}
    for rank, found in parts:
        turns: dict[tuple[str, str, int], int] = defaultdict(int)
        for each in found:
            place = (each.code, each.site.file, each.site.line)
            together.setdefault((*place, turns[place]), []).append((rank, each))
            turns[place] += 1
    everyone = [rank for rank, _ in parts if rank.rank is not None]
    return [_of_ranks(group, everyone) for group in together.values()]


def _of_ranks(group: list[tuple[RunTimeline, Finding]], everyone: list[RunTimeline]) -> Finding:
    first = group[0][1]
    those = [rank for rank, _ in group]
    told = ", ".join(rank.label for rank in those)
    evidence = {**first.evidence, "process": first.evidence.get("process", told)}
    if len(those) > 1:
        evidence["process"] = told
    message = first.message
    others = [rank for rank in everyone if rank not in those]
    if others and len(others) < len(everyone):
        message = f"{message}, on {told} of {len(everyone)} ranks"
        if elsewhere := _elsewhere(first, those[0], others):
            evidence["elsewhere"] = elsewhere
    return dataclasses.replace(first, message=message, evidence=evidence)


def _elsewhere(finding: Finding, own: RunTimeline, others: Iterable[RunTimeline]) -> str:
    """Where the other ranks have the tensors that the finding names."""
    here = _devices(own)
    told = []
    for name in dict.fromkeys(_NAMES.findall(finding.message)):
        for rank in others:
            there = _devices(rank).get(name, "")
            if name in here and there and _kind(there) != _kind(here[name]):
                told.append(f"`{name}` is on {there} in {rank.label}")
    return ", ".join(told[:MOST_NAMES])


def _devices(rank: RunTimeline) -> dict[str, str]:
    """Where each named tensor was last."""
    found: dict[str, str] = {}
    for process in rank.processes:
        for number in sorted(process.part.names):
            storage = process.storage(number)
            if storage is not None:
                found[rank.name(storage)] = storage.device
    return found


def _kind(device: str) -> str:
    return device.partition(":")[0]


# --- ways --------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Difference:
    """Something that only some of the ranks did."""

    site: Site
    what: str
    ranks: tuple[str, ...]
    others: tuple[str, ...]
    count: int
    time: float


def differences(timeline: RunTimeline) -> list[Difference]:
    """What only some ranks did at a line, the first first. Lines count, not how often."""
    ranks = ranks_of(timeline)
    if len(ranks) < 2:
        return []
    seen: dict[tuple[str, int, str], dict[str, list[tuple[Event, int]]]] = {}
    for rank in ranks:
        for event, count in (each for process in rank.processes for each in _deeds(process)):
            if event.site is not None:
                key = (event.site.file, event.site.line, _way(event))
                seen.setdefault(key, {}).setdefault(rank.label, []).append((event, count))
    everyone = [rank.label for rank in ranks]
    return sorted(
        (
            _difference(timeline, those, [each for each in everyone if each not in those])
            for those in seen.values()
            if len(those) < len(everyone)
        ),
        key=lambda each: each.time,
    )


@without_collector()
def _deeds(process: Process) -> list[tuple[Event, int]]:
    """The first event of each kind, place and way of a process, and how many there are."""
    storages = process.part.storages
    found: dict[tuple[int, ...], list[Row]] = {}
    for row in process.part.rows:
        if row[0] in _PLACES:
            target, source = storages.get(row[4], _NOWHERE), storages.get(row[5], _NOWHERE)
            found.setdefault((row[0], row[3], row[6], target[2], source[2]), []).append(row)
    return [(process.event(rows[0]), len(rows)) for rows in found.values()]


def _difference(
    timeline: RunTimeline,
    those: Mapping[str, Sequence[tuple[Event, int]]],
    others: Sequence[str],
) -> Difference:
    deeds = [deed for each in those.values() for deed in each]
    first = min((event for event, _ in deeds), key=lambda event: event.time)
    assert first.site is not None
    return Difference(
        first.site,
        sentences.sentence(first, timeline.name),
        tuple(those),
        tuple(others),
        sum(count for _, count in deeds) // len(those),
        first.time,
    )


def _way(event: Event) -> str:
    """Each rank has a device of its own: its kind counts, not its number."""
    target = _kind(event.storage.device) if event.storage else ""
    source = _kind(event.other.device) if event.other else ""
    return f"{event.did.value} {event.op} {source} {target}"


# --- ends --------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class End:
    """How the recording of a process ended."""

    label: str
    closed: bool
    last: float
    """Its last sign of life, in seconds since the run began."""
    site: Site | None
    """Where that was."""
    stand: Stand | None


def ends(timeline: RunTimeline) -> list[End]:
    return [_end(timeline, process) for process in timeline.processes]


def _end(timeline: RunTimeline, process: Process) -> End:
    rows = process.part.rows
    event = process.event(max(rows, key=lambda row: row[1])) if rows else None
    last, site = (event.time, event.site or event.by) if event else (process.offset, None)
    stand = None if process.part.closed else stand_of(process.part.path)
    if stand is not None and stand.time - timeline.started >= last:
        last = stand.time - timeline.started
        site = Site(stand.file, max(stand.line, 1)) if stand.file else site
    return End(process.label, process.part.closed, last, site, stand)


def unended(timeline: RunTimeline) -> Iterator[str]:
    """A line for each process whose recording has no end, the first to fall silent first."""
    lost = sorted((each for each in ends(timeline) if not each.closed), key=lambda each: each.last)
    for end in lost:
        at = f", at {sentences.short(end.site.file)}:{end.site.line}" if end.site else ""
        yield (
            f"{end.label} has no end, it was killed or still runs: last seen after "
            f"{end.last:.1f} s{at}{_standing(end, lost)}"
        )


def _standing(end: End, lost: Sequence[End]) -> str:
    stand = end.stand
    if stand is None:
        return ""
    inside = "inside" if stand.inside else "past"
    told = f", {inside} its {_ordinal(stand.count)} collective, {stand.op}"
    behind = [each for each in lost if each.stand and each.stand.count < stand.count]
    if behind:
        told += f", to which {' and '.join(each.label for each in behind)} did not come"
    return told


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


# --- devices -----------------------------------------------------------------------------
def shared_devices(timeline: RunTimeline) -> Iterator[str]:
    """A GPU on which several ranks of one machine have tensors: mostly, one of them was meant."""
    users: dict[str, list[str]] = defaultdict(list)
    for rank in ranks_of(timeline):
        process = rank.processes[0]
        header, text = process.part.header, process.part.text
        if isinstance(header.get("local_rank"), int):
            for device in {text(row[2]) for row in process.part.storages.values()}:
                if device.startswith("cuda"):
                    users[f"{device}|{header.get('host')}|{header.get('visible')}"] += [rank.label]
    for where, those in sorted(users.items()):
        if len(those) > 1:
            yield f"{' and '.join(those)} have tensors on the same {where.partition('|')[0]}"
