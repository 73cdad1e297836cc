"""The tensors that an operation of a run was given, and how messages name them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from tensortrail.findings import Site
from tensortrail.rules.shared.sentences import first_of
from tensortrail.rules.shared.sizes import dimensions
from tensortrail.rules.timeline import Event, Storage, Timeline
from tensortrail.rules.unchanging import unchanging


@unchanging(frozen=True, slots=False)
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
    optimizer: Mapping[str, Any] = field(default_factory=dict)
    """The optimizer that was stepping, and which part of its weight this is."""
    weight: Storage | None = None
    """Whose state or gradient it is, in an optimizer's step."""
    has_gradient: bool = False
    """Autograd follows it."""
    names: tuple[str, ...] = ()
    """All names of a weight that is tied."""
    unsaved: str = ""
    """The name of a buffer that no state dict has."""
    hidden: Mapping[str, Any] = field(default_factory=dict)
    """The plain list that hides the layer it belongs to from the model, and its line."""
    left_out: tuple[str, Site] | None = None
    """Its name and the line, where `functional_call` was not given another one in its place."""
    behind: tuple[Site, ...] = ()
    """The lines that the value came through, the nearest first."""


def operands(timeline: Timeline, event: Event) -> list[Operand]:
    given = event.facts.get("operands")
    rows = given if isinstance(given, (list, tuple)) else ()
    return [_operand(timeline, event.process, each) for each in rows if isinstance(each, dict)]


def _operand(timeline: Timeline, process: str, given: Mapping[str, Any]) -> Operand:
    hook, optimizer = given.get("hook"), given.get("optimizer")
    hidden = given.get("hidden")
    optimizer = optimizer if isinstance(optimizer, Mapping) else {}
    number, weight = given.get("storage"), optimizer.get("weight")
    return Operand(
        str(given.get("arg", "")),
        str(given.get("device", "")),
        str(given.get("type", "")),
        tuple(given.get("shape", ())),
        timeline.storage(process, number) if number else None,
        str(given.get("name", "")),
        hook if isinstance(hook, Mapping) else {},
        optimizer,
        timeline.storage(process, weight) if weight else None,
        bool(given.get("gradient")),
        tuple(map(str, given.get("names", ()))),
        str(given.get("unsaved", "")),
        hidden if isinstance(hidden, Mapping) else {},
        _left_out(given.get("left out")),
        tuple(_sites(given.get("behind"))),
    )


def _left_out(told: object) -> tuple[str, Site] | None:
    match told:
        case [str(name), str(file), int(line)] if line > 0:
            return name, Site(file, line)
    return None


def _sites(behind: object) -> Iterator[Site]:
    for each in behind if isinstance(behind, (list, tuple)) else ():
        match each:
            case [str(file), int(line), str(source)]:
                yield Site(file, line, source=source)


def called(timeline: Timeline, operand: Operand) -> str:
    """`Net.embed.weight`, or what it looks like."""
    if part := part_of_weight(timeline, operand.optimizer, operand.weight):
        return f"`{part}`"
    if operand.storage is not None and timeline.is_named(operand.storage):
        return f"`{timeline.name(operand.storage)}`"
    if operand.variable:
        return f"`{operand.variable}`"
    kind = operand.type_name or "tensor"
    told = f"{kind} {dimensions(operand.shape)}" if operand.shape else f"scalar {kind}"
    return f"{told} ({_argument(operand.arg)})"


def _argument(arg: str) -> str:
    """Some have no name in their operation, and in recordings of older versions none has."""
    return f"argument {arg}" if arg[:1].isdigit() else arg if " " in arg else f"`{arg}`"


def part_of_weight(timeline: Timeline, optimizer: Mapping[str, Any], weight: Storage | None) -> str:
    """`exp_avg of net.0.weight`: what an optimizer's step was given; "" if it is no such part."""
    known = weight is not None and timeline.is_named(weight)
    return f"{optimizer.get('part')} of {timeline.name(weight)}" if weight and known else ""


def called_there(timeline: Timeline, event: Event) -> str:
    """The tensor of an event: its name, or what the program's own line calls it."""
    if event.storage is None:
        return "a tensor"
    variable = event.facts.get("variable")
    known = timeline.is_named(event.storage) or not variable
    return f"`{timeline.name(event.storage) if known else variable}`"


def named(timeline: Timeline, storages: Iterable[Storage], most: int = 3) -> str:
    """`a.weight`, `a.bias` and 4 more."""
    names = dict.fromkeys(timeline.name(each) for each in storages)
    return first_of([f"`{name}`" for name in names], most)


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
                f"{name} on {module} is no longer called: the module's forward was replaced by "
                f"{hook.get('by')}"
            )
        case "added":
            return f"it has no hook, as it came into {module} after the hooks ({name}) were put on"
        case "moved":
            return f"{name} on {module} sends inputs to {device} and leaves weights where they are"
        case _:
            called = str(hook.get("called", module))
            on = "" if called == module else f" on {module}"
            return f"{name}{on} brings it to {device} only while {called} itself is called"
