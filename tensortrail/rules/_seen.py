"""What the runtime halves of rules ask about the events of a run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tensortrail.findings import Confidence, Severity, Site
from tensortrail.rules.timeline import Did, Event, Storage, Timeline

AFTERMATH = (Did.FREE, Did.PHASE, Did.SYNC, Did.WORKER, Did.PENDING)
"""What is still recorded while an exception takes a thread down."""
BRINGS = (Did.CREATE, Did.MOVE, Did.SWAP, Did.LOAD)
MB = 1_000_000
NO_VALUES = re.compile(
    r"cannot be called on meta|with Meta tensors|convert meta device|Cannot copy out of meta"
    r"|data-independent implementation does not exist",
    re.IGNORECASE,
)
"""Messages of operations that need the values of a meta tensor."""


def size(nbytes: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"


def line_of(event: Event) -> Site | None:
    """The user's line; the library's where no user's is known."""
    return event.site or event.by


def by_line(events: Iterable[Event]) -> list[list[Event]]:
    """The events of each line, in the order in which the lines came up."""
    found: dict[tuple[str, int], list[Event]] = {}
    for event in events:
        at = line_of(event)
        found.setdefault((at.file, at.line) if at else ("", 0), []).append(event)
    return list(found.values())


def reader_of(event: Event) -> Site | None:
    """The innermost frame: the one that got the answer."""
    return event.by or event.site


def named(timeline: Timeline, storages: Iterable[Storage], most: int = 3) -> str:
    """`a.weight`, `a.bias` and 4 more."""
    names = list(dict.fromkeys(timeline.name(each) for each in storages))
    told = [f"`{name}`" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(told)} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(told[:-1]), *told[-1:])))


def put_there(timeline: Timeline, storage: Storage, until: Event) -> Event | None:
    """What brought the storage to the device it is on."""
    history = timeline.history(storage, until)
    return next((each for each in reversed(history) if each.did in BRINGS), None)


def doer(event: Event) -> str:
    """`Tensor.to` at train.py:12"""
    return f"`{event.op}`{where(event)}"


def place(site: Site | None) -> str:
    """To be put behind what happened there; nothing where that is not known."""
    return f" at {os.path.basename(site.file)}:{site.line}" if site else ""


def where(event: Event | None) -> str:
    return place(line_of(event)) if event is not None else ""


@dataclass(frozen=True)
class Operand:
    """A tensor that the operation of a MEET or ERROR event was given."""

    arg: str
    device: str
    type_name: str
    shape: tuple[int, ...]
    storage: Storage | None
    hook: Mapping[str, Any] = field(default_factory=dict)
    """The hook that should have brought it to another device, and why it did not."""


def operands(timeline: Timeline, event: Event) -> list[Operand]:
    given = event.facts.get("operands")
    return [
        Operand(
            str(each.get("arg", "")),
            str(each.get("device", "")),
            str(each.get("type", "")),
            tuple(each.get("shape", ())),
            timeline.storage(event.process, each["storage"]) if each.get("storage") else None,
            each["hook"] if isinstance(each.get("hook"), Mapping) else {},
        )
        for each in (given if isinstance(given, (list, tuple)) else ())
        if isinstance(each, dict)
    ]


def called(timeline: Timeline, operand: Operand) -> str:
    """`Net.embed.weight`, or what it looks like."""
    if operand.storage is not None and timeline.is_named(operand.storage):
        return f"`{timeline.name(operand.storage)}`"
    shape = "x".join(map(str, operand.shape)) or "scalar"
    return f"{operand.type_name or 'tensor'} {shape} (argument {operand.arg})"


def not_brought(hook: Mapping[str, Any]) -> str:
    """Why a hook did not bring a weight, in words."""
    name, module, device = (str(hook.get(key)) for key in ("hook", "module", "to"))
    match hook.get("why"):
        case "removed":
            where = ""
            match hook.get("at"):
                case [str(file), int(line), *_] if file:
                    where = f" at {os.path.basename(file)}:{line}"
            return f"{name}, which brought it to {device}, was taken off {module}{where}"
        case "replaced":
            return (
                f"{name} on {module} is not called any more: the module's forward was replaced by "
                f"{hook.get('by')}"
            )
        case "moved":
            return f"{name} on {module} sends inputs to {device} and leaves weights where they are"
        case _:
            called = hook.get("called", module)
            return f"{name} on {module} brings it to {device} only while {called} itself is called"


def was_handled(timeline: Timeline, error: Event) -> bool:
    """Its thread went on with something: the program had caught it."""
    return any(later.did not in AFTERMATH for later in timeline.after(error))


def weight(timeline: Timeline, errors: Iterable[Event]) -> tuple[Severity, Confidence]:
    """Of a finding about exceptions: little if the program handled all of them."""
    if all(was_handled(timeline, error) for error in errors):
        return Severity.NOTE, Confidence.LOW
    return Severity.ERROR, Confidence.HIGH
