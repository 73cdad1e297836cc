"""The tensors that an operation of a run was given, and how messages name them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tensortrail.rules.timeline import Event, Storage, Timeline


@dataclass(frozen=True)
class Operand:
    """A tensor that the operation of a MEET or ERROR event was given."""

    arg: str
    device: str
    type_name: str
    shape: tuple[int, ...]
    storage: Storage | None
    variable: str = ""
    """What the program's own line calls it, if it has no other name."""
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
            str(each.get("name", "")),
            each["hook"] if isinstance(each.get("hook"), Mapping) else {},
        )
        for each in (given if isinstance(given, (list, tuple)) else ())
        if isinstance(each, dict)
    ]


def called(timeline: Timeline, operand: Operand) -> str:
    """`Net.embed.weight`, or what it looks like."""
    if operand.storage is not None and timeline.is_named(operand.storage):
        return f"`{timeline.name(operand.storage)}`"
    if operand.variable:
        return f"`{operand.variable}`"
    shape = "x".join(map(str, operand.shape)) or "scalar"
    return f"{operand.type_name or 'tensor'} {shape} (argument {operand.arg})"


def named(timeline: Timeline, storages: Iterable[Storage], most: int = 3) -> str:
    """`a.weight`, `a.bias` and 4 more."""
    names = list(dict.fromkeys(timeline.name(each) for each in storages))
    told = [f"`{name}`" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(told)} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(told[:-1]), *told[-1:])))


def not_brought(hook: Mapping[str, Any]) -> str:
    """Why a hook did not bring a weight, in words."""
    name, device = str(hook.get("hook")), str(hook.get("to"))
    module = str(hook.get("shown") or hook.get("module"))
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
