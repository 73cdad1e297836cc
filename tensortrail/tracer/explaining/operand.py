"""An operand of the failed operation: its name, where it lies, who put it there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensortrail.findings import Site
from tensortrail.rules.shared.history import placing
from tensortrail.rules.shared.operands import not_brought, part_of_weight
from tensortrail.rules.timeline import Did, Event, Storage, Timeline
from tensortrail.tracer.explaining.names_in_traceback import Scene
from tensortrail.tracer.identity.inner_tensors import device_of
from tensortrail.tracer.identity.lines_behind import May, lies_on
from tensortrail.tracer.noticing.failed_operands import Failure

Origins = Callable[[Mapping[str, Any]], May]


@dataclass(frozen=True)
class Operand:
    """One tensor the failed operation was given."""

    argument: str
    name: str
    device: str
    dtype: str
    shape: tuple[int, ...]
    placed: Event | None = None
    """The event that put it where it is."""
    made: Event | None = None
    """Where its values came from, when that is another event."""
    hook: str = ""
    """The hook that should have moved it, and why it did not."""
    odd: bool = False
    """It lies where the others do not."""
    behind: tuple[Site, ...] = ()
    """The lines that it came through, where no event tells who put it there."""


def operands_of(
    failure: Failure, scene: Scene, timeline: Timeline | None, origins: Origins | None = None
) -> Iterable[Operand]:
    """`origins` says what an operand may have come from, where it is not its device that counts."""
    odd = _odd_device(failure.operands)
    identities = failure.identities or (0,) * len(failure.operands)
    for told, identity in zip(failure.operands, identities, strict=True):
        storage = _storage(timeline, told)
        events = timeline.history(storage) if timeline and storage else ()
        puts = placing(events)
        placed = puts[-1] if puts else None
        made = puts[0] if len(puts) > 1 else None
        name = (
            _part(timeline, told)
            or _name(timeline, storage)
            or _variables(told, scene.name(identity))
        )
        yield Operand(
            argument=str(told["arg"]),
            name=name,
            device=str(told["device"]),
            dtype=str(told["type"] or told["dtype"]),
            shape=tuple(told["shape"]),
            placed=placed,
            made=made if told["device"] == odd else None,
            hook=_hook(told) or scene.hook(identity) or _left_there(timeline, storage),
            odd=told["device"] == odd,
            behind=_behind(scene, identity, origins(told))
            if origins
            else scene.lines_behind(identity, lies_on(odd))
            if told["device"] == odd and not placed
            else (),
        )


def _behind(scene: Scene, identity: int, may: May) -> tuple[Site, ...]:
    """A weight is made where its module is, which its history tells."""
    return () if scene.is_weight(identity) else scene.lines_behind(identity, may)


def _name(timeline: Timeline | None, storage: Storage | None) -> str:
    """As the findings of the run call it; empty if it has no name there."""
    named = timeline is not None and storage is not None and timeline.is_named(storage)
    return timeline.name(storage) if timeline and storage and named else ""


def _part(timeline: Timeline | None, told: dict[str, Any]) -> str:
    """Of an optimizer's step: the state or gradient of a weight."""
    optimizer = told.get("optimizer")
    if timeline is None or optimizer is None:
        return ""
    return part_of_weight(timeline, optimizer, timeline.here(optimizer["weight"]))


def _variables(told: dict[str, Any], outside: str) -> str:
    """The variable at the failing line, as findings call it, and the caller's for the same."""
    inside = str(told.get("name", ""))
    if inside and outside and inside != outside:
        return f"{inside} ({outside} in the caller)"
    return inside or outside


def _hook(told: dict[str, Any]) -> str:
    return not_brought(told["hook"]) if "hook" in told else ""


def _left_there(timeline: Timeline | None, storage: Storage | None) -> str:
    """The library's call that took it away, and what its setting had said."""
    facts = taken_by(timeline, storage.number) if timeline and storage else {}
    if not facts:
        return ""
    off = facts.get("value") is False
    although = f", although `{facts.get('setting')}` is False" if off else ""
    return f"left there by `{facts['call']}()`{although}"


def taken_by(timeline: Timeline, storage: int) -> Mapping[str, Any]:
    """What is known of the library's call that moved it last."""
    for event in reversed(timeline.events(Did.HOOK)):
        if "call" in event.facts and storage in event.facts.get("storages", ()):
            return event.facts
    return {}


def compared_operand(
    name: str,
    tensor: Any,
    storage: Storage | None,
    timeline: Timeline,
    scene: Scene,
    held_by: Any,
    may: May | None,
) -> Operand:
    """`held_by` is the variable's value: the tensor, or a list that has it."""
    device = str(device_of(tensor))
    puts = placing(timeline.history(storage)) if storage else []
    return Operand(
        argument=name,
        name=_name(timeline, storage),
        device=device,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        placed=puts[-1] if puts else None,
        behind=()
        if puts and may is None
        else scene.lines_behind(id(held_by), may or lies_on(device)),
    )


def _odd_device(operands: Sequence[dict[str, Any]]) -> str:
    """The device that is to blame: meta before cpu before the rarest other."""
    devices = [str(each["device"]) for each in operands if each["shape"]]
    if len(set(devices)) < 2:
        return "meta" if "meta" in devices else ""
    order = {"meta": 0, "cpu": 1}
    return min(set(devices), key=lambda each: (order.get(each, 2), devices.count(each)))


def _storage(timeline: Timeline | None, told: dict[str, Any]) -> Storage | None:
    return timeline.here(told["storage"]) if timeline and told["storage"] else None
