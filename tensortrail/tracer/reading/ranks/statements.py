"""Statements tell what a rank comes to: ranks that say the same of one subject are told once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensortrail.rules.timeline import Event
from tensortrail.tracer.reading.ranks.findings import kind
from tensortrail.tracer.reading.sentences import place
from tensortrail.tracer.reading.summary import Summary

MOVES, DEVICES, PHASES, MEETINGS, ERRORS = "moves", "devices", "phases", "meetings", "errors"
LONGEST = 200


@dataclass(frozen=True, slots=True)
class Statement:
    section: str
    subject: str
    """`cuda -> cpu at train.py:40`: the same words on every rank."""
    amounts: tuple[float, ...]
    """By section: bytes and times, bytes and storages and the most bytes, seconds, times."""


def statements(summary: Summary) -> Iterator[Statement]:
    """Those of one rank."""
    yield from _moves(summary)
    yield from _devices(summary)
    yield from _phases(summary)
    yield from _counted(summary)


def _moves(summary: Summary) -> Iterator[Statement]:
    """Each rank has a device of its own: its kind counts, not its number."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for each in summary.moves_by_line:
        by = f" by {place(each.by)}" if each.site and each.by else ""
        way = f"{kind(each.source)} -> {kind(each.target)} at {place(each.site or each.by)}{by}"
        found[way][0] += each.nbytes
        found[way][1] += each.count
    for way, amounts in found.items():
        yield Statement(MOVES, way, tuple(amounts))


def _devices(summary: Summary) -> Iterator[Statement]:
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for use in summary.alive_by_device:
        for column, amount in enumerate((use.nbytes, use.count, use.peak)):
            found[kind(use.device)][column] += amount
    for device, amounts in found.items():
        yield Statement(DEVICES, device, tuple(amounts))


def _phases(summary: Summary) -> Iterator[Statement]:
    took: dict[str, float] = defaultdict(float)
    for each in summary.phases:
        if each.depth == 0:
            took[each.name] += each.end - each.start
    for name, seconds in took.items():
        yield Statement(PHASES, name, (seconds,))


def _counted(summary: Summary) -> Iterator[Statement]:
    counts = ((MEETINGS, map(_met, summary.meetings)), (ERRORS, map(_raised, summary.errors)))
    for section, subjects in counts:
        for subject, times in Counter(subjects).items():
            yield Statement(section, subject, (times,))


def _met(event: Event) -> str:
    devices = _devices_of(event.facts.get("devices"))
    return f"{event.op} on {devices} at {place(event.site or event.by)}"


def _raised(event: Event) -> str:
    message = str(event.facts.get("message", "")).partition("\n")[0][:LONGEST]
    called = event.op or "the program"
    return f"{event.facts.get('type')} from {called} at {place(event.site or event.by)}: {message}"


def _devices_of(devices: object) -> str:
    several = devices if isinstance(devices, (list, tuple)) else ()
    return " and ".join(dict.fromkeys(kind(str(each)) for each in several)) or "several devices"
