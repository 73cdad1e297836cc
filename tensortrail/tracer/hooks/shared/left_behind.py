"""A move of weights may leave storages behind; this tells which, and who holds them there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.storages import Entry

SMALLEST_TOLD = 1024
MOST_TOLD = 20


def note_moved(
    recorder: Recorder,
    what: str,
    before: Sequence[Entry],
    after: Sequence[Entry],
    facts: Mapping[str, Any] | None = None,
    op: str = "Module._apply",
) -> None:
    was, now = bytes_by_device(before), bytes_by_device(after)
    left, held = _left(before, after)
    told = {
        "class": what,
        "before": dict(was),
        "after": dict(now),
        "left": sum(entry.described.nbytes for entry in left),
        "held": sum(entry.described.nbytes for entry in held),
        "holders": recorder.holders(held) if _worth_telling(held) else [],
        "storages": [entry.number for entry in held[:MOST_TOLD]],
    }
    first = after[0] if after else None
    recorder.note(Did.MODULE, first, op=op, facts=told | dict(facts or {}))


def note_held(
    recorder: Recorder, what: str, before: Sequence[Entry], after: Sequence[Entry], op: str
) -> None:
    """Of what comes and goes at every call, only that which stayed is worth an event."""
    if _worth_telling(_left(before, after)[1]) and not recorder.often(Did.MODULE, f"{op} {what}"):
        note_moved(recorder, what, before, after, op=op)


def _left(before: Sequence[Entry], after: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """The storages that are no longer the module's; those of them that live on all the same."""
    now = {entry.device for entry in after}
    kept = {entry.number for entry in after}
    left = [entry for entry in before if entry.number not in kept]
    return left, [entry for entry in left if entry() is not None and entry.device not in now]


def _worth_telling(held: Sequence[Entry]) -> bool:
    return sum(entry.described.nbytes for entry in held) >= SMALLEST_TOLD


def bytes_by_device(entries: Sequence[Entry]) -> Counter[str]:
    total: Counter[str] = Counter()
    for entry in entries:
        total[entry.device] += entry.described.nbytes
    return total
