"""The phases of a run are made from the events of their beginnings and ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.live_bytes import Level
from tensortrail.tracer.reading.process import Process
from tensortrail.tracer.reading.timeline import RunTimeline
from tensortrail.tracer.trail.layout import CODE

PHASE = CODE[Did.PHASE]


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    process: str
    thread: str
    start: float
    end: float
    depth: int
    """How many phases it lies in."""
    peaks: Mapping[str, int]
    """By device: the most bytes that lay there meanwhile."""
    ended: bool = True


@dataclass(frozen=True, slots=True)
class _Stretch:
    name: str
    thread: str
    start: float
    depth: int
    repeats: bool
    """It lies in a phase of the same name: a library that calls itself."""
    end: float = -1


def phases(timeline: RunTimeline, on_device: Mapping[str, Level], seconds: float) -> list[Phase]:
    ranks = timeline.by_rank()
    found = []
    for rank, process in ((each, process) for each in ranks for process in each.processes):
        own = _own(on_device, rank.label) if len(ranks) > 1 else on_device
        for each in _stretches(process):
            if each.repeats:
                continue
            ended = each.end >= 0
            end = each.end if ended else seconds
            peaks = {name: level.peak_between(each.start, end) for name, level in own.items()}
            found.append(
                Phase(
                    each.name, process.label, each.thread, each.start, end, each.depth, peaks, ended
                )
            )
    return sorted(found, key=lambda each: (each.start, each.process, each.thread, each.depth))


def _own(on_device: Mapping[str, Level], rank: str) -> Mapping[str, Level]:
    """The devices of that rank."""
    ending = f" ({rank})"
    return {
        name.removesuffix(ending): level
        for name, level in on_device.items()
        if name.endswith(ending)
    }


def _stretches(process: Process) -> Iterator[_Stretch]:
    running: dict[str, list[_Stretch]] = defaultdict(list)
    for row in process.part.rows:
        if row[0] != PHASE:
            continue
        event = process.event(row)
        around = running[event.thread]
        if began := event.facts.get("began"):
            depth = sum(not each.repeats for each in around)
            repeats = str(began) in [each.name for each in around]
            around.append(_Stretch(str(began), event.thread, event.time, depth, repeats))
        elif (ended := str(event.facts.get("ended"))) in [each.name for each in around]:
            # What it held and never saw the end of ends with it.
            while around:
                last = around.pop()
                yield replace(last, end=event.time)
                if last.name == ended:
                    break
    for left in running.values():
        yield from left
