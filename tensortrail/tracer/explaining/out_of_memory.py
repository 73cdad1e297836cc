"""Memory ran out: this tells how many bytes were missing, what lies there, and what makes room."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tensortrail.findings import Confidence, Finding, Setting, Severity
from tensortrail.rules.shared.device_maps import placements, rows, with_map
from tensortrail.rules.shared.failures import was_handled
from tensortrail.rules.shared.sizes import memory
from tensortrail.rules.timeline import Did
from tensortrail.tracer.explaining.memory_table import filled_of, growing
from tensortrail.tracer.reading.live_bytes import lives
from tensortrail.tracer.reading.timeline import RunTimeline

_BYTES = r"[\d.]{1,12} (?:bytes|[KMGT]?i?B)"
_DEVICE = re.compile(
    rf"Tried to allocate (?P<asked>{_BYTES})\. GPU (?P<index>\d{{1,3}}) has a total capacity of "
    rf"(?P<total>{_BYTES}) of which (?P<free>{_BYTES}) is free"
)
_IDLE = re.compile(rf"(?P<idle>{_BYTES}) is reserved by PyTorch but unallocated")
_HOST = re.compile(r"you tried to allocate (?P<asked>\d{1,20}) bytes")
_VARIABLE = re.compile(r"PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF")
_BLOCK = re.compile(r"\.\d+$")
"""The name of one of many: its weights are not those of another module as well."""
_UNITS = {"bytes": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
MOST_HOLDERS = 4


@dataclass(frozen=True)
class Shortage:
    """What an allocation lacked, as its error tells."""

    device: str
    asked: int
    free: int | None = None
    total: int = 0
    idle: int = 0
    """Reserved by the allocator in pieces, and not in use."""
    variable: str = ""
    """That sets how memory is allocated, in this release."""

    @property
    def missing(self) -> int:
        return max(0, self.asked - (self.free or 0))


def shortage(message: str) -> Shortage | None:
    if found := _DEVICE.search(message):
        idle, variable = _IDLE.search(message), _VARIABLE.search(message)
        return Shortage(
            f"cuda:{found['index']}",
            asked=_number(found["asked"]),
            free=_number(found["free"]),
            total=_number(found["total"]),
            idle=_number(idle["idle"]) if idle else 0,
            variable=variable[0] if variable else "",
        )
    found = _HOST.search(message)
    return Shortage("cpu", int(found["asked"])) if found else None


def shortages(timeline: RunTimeline) -> Iterator[Finding]:
    """What the run ended for want of, as a finding of no rule: its settings are what counts."""
    for event in timeline.events(Did.ERROR):
        lack = shortage(str(event.facts.get("message", "")))
        if lack is None or event.site is None or was_handled(timeline, event):
            continue
        yield Finding(
            code="memory",
            name="out-of-memory",
            message="; ".join((needed(lack), *list(growing(filled_of(event)))[:1])),
            severity=Severity.ERROR,
            confidence=Confidence.HIGH,
            site=timeline.dressed(event.site),
            settings=tuple(room(timeline, lack)),
        )


def needed(lack: Shortage) -> str:
    if lack.free is None:
        return f"{memory(lack.asked)} on {lack.device} in one piece"
    left = f"{memory(lack.free)} of {memory(lack.total)} is free"
    return f"{memory(lack.asked)} on {lack.device}, where {left}: {memory(lack.missing)} is missing"


def held_by(timeline: RunTimeline, device: str) -> list[str]:
    """What lies there, by the class of its model, most bytes first."""
    total: Counter[str] = Counter()
    for life in lives(timeline):
        for number in life.born.keys() - life.freed.keys():
            storage = life.process.storage(number)
            if storage is not None and life.process.part.text(life.device(number)) == device:
                named = timeline.is_named(storage)
                root = timeline.name(storage).partition(".")[0] if named else ""
                total[root or "tensors without a name"] += life.last_bytes(number)
    return [f"{memory(n)} {name}" for name, n in total.most_common(MOST_HOLDERS) if n]


def room(timeline: RunTimeline | None, lack: Shortage) -> Iterator[Setting]:
    """Settings with which there would have been enough."""
    if lack.variable and lack.idle + (lack.free or 0) >= lack.asked:
        why = f"{memory(lack.idle)} is reserved in pieces that are too small, and not in use"
        yield Setting("torch", lack.variable, "expandable_segments:True", why, "environment")
    if timeline is not None:
        yield from _offloaded(timeline, lack)


def _offloaded(timeline: RunTimeline, lack: Shortage) -> Iterator[Setting]:
    """The device map with the last blocks of the device on the CPU, as many as it takes."""
    event = next(reversed(list(placements(timeline))), None)
    if event is None or event.facts.get("more_rows"):
        return
    moved: list[tuple[str, int]] = []
    for row in reversed(list(rows(event))):
        name, nbytes = str(row.get("module")), row.get("nbytes")
        there = row.get("declared") == lack.device and isinstance(nbytes, int)
        if there and _BLOCK.search(name) and (not moved or _frees(moved) < lack.missing):
            moved.append((name, nbytes))
    if not moved or _frees(moved) < lack.missing:
        return
    names = [name for name, _ in reversed(moved)]
    size = memory(sum(nbytes for _, nbytes in moved))
    which = names[0] if len(names) == 1 else f"{len(names)} modules, {names[0]} to {names[-1]},"
    why = (
        f"takes {which} to the CPU, which needs {size} there; each comes back to run, and goes "
        "again if no gradients are asked for"
    )
    setting = with_map(timeline, event, dict.fromkeys(names, "cpu"), why)
    yield replace(setting, at=timeline.dressed(setting.at) if setting.at else None)


def _frees(moved: Sequence[tuple[str, int]]) -> int:
    """The largest of them must still have room while it runs, and as much for its results."""
    sizes = [nbytes for _, nbytes in moved]
    return sum(sizes) - 2 * max(sizes)


def _number(text: str) -> int:
    value, _, unit = text.partition(" ")
    power = _UNITS.get(unit, _UNITS.get(unit[:1], 0))
    return round(float(value) * float(1024**power))
