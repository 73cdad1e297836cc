"""What a recorded run shows of tensors that a move of their module left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensortrail.findings import Fix, Safety, Site
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.lines import by_line, place, where
from tensortrail.rules.shared.mends import registered
from tensortrail.rules.shared.operands import Operand, operands
from tensortrail.rules.timeline import Did, Event, Storage, Timeline

Stayed = Mapping[tuple[str, int], Event]
"""Storage of a plain attribute -> the move of its module, which left it behind."""


def meetings_of_what_stayed(timeline: Timeline) -> Iterator[tuple[list[Event], Operand, Event]]:
    """What happened at a line where an operand was left behind, that operand, and the move that
    left it."""
    stayed = {
        (event.process, int(number)): event
        for event in timeline.events(Did.MODULE)
        for number in numbers(event)
    }
    for events in by_line(timeline.events(Did.ERROR, Did.MEET)) if stayed else ():
        both = [(event, left) for event in events if (left := met(timeline, event, stayed))]
        if both and (storage := both[0][1].storage) is not None:
            yield [event for event, _ in both], both[0][1], stayed[storage.key]


def numbers(event: Event) -> Iterator[int]:
    """The storages that the move of a module did not take along."""
    told = event.facts.get("companions")
    yield from (each for each in told or () if isinstance(each, int))


def met(timeline: Timeline, event: Event, stayed: Stayed) -> Operand | None:
    """An operand of the event that was left behind, where another operand is elsewhere."""
    for operand in operands(timeline, event):
        moved = stayed.get(operand.storage.key) if operand.storage is not None else None
        if moved is not None and moved.time <= event.time and _elsewhere(timeline, event, operand):
            return operand
    return None


def _elsewhere(timeline: Timeline, event: Event, operand: Operand) -> bool:
    return any(each.device != operand.device for each in operands(timeline, event))


def why_it_stayed(moved: Event, storage: Storage) -> str:
    line = _assigned(moved, storage)
    set_at = f" (assigned{place(line)})" if line else ""
    places = moved.facts.get("after")
    went = " and ".join(map(str, places)) if isinstance(places, Mapping) else "another device"
    return (
        f"it is neither a parameter nor a buffer{set_at}, so it stayed there when "
        f"`{moved.facts.get('class')}` was moved to {went}{where(moved)}"
    )


def _assigned(moved: Event, storage: Storage) -> Site | None:
    """The line of the class that assigns it, where its source was there."""
    for number, line in zip(numbers(moved), moved.facts.get("assigned") or (), strict=False):
        match line:
            case [str(file), int(at)] if number == storage.number:
                return Site(file, at)
    return None


def buffer_in_run(timeline: Timeline, storage: Storage, event: Event, moved: Event) -> Fix:
    """The assignment, or where the run shows its value made, becomes a registration; in words
    where neither is known."""
    made = put_there(timeline, storage, event)
    site = _assigned(moved, storage) or (made.site if made else None) or event.site
    owner, _, name = timeline.name(storage).rpartition(".")
    fix = registered(timeline, site, name, [*_beside(timeline, moved, owner)]) if site else None
    what = f"make it a buffer: `self.register_buffer({name!r}, ...)`"
    return fix or Fix(what, Safety.DISPLAY, ())


def _beside(timeline: Timeline, moved: Event, owner: str) -> Iterator[str]:
    """Attributes of the same module that the move left behind too."""
    for number in numbers(moved):
        storage = timeline.storage(moved.process, number)
        if storage is not None:
            path, _, name = timeline.name(storage).rpartition(".")
            if path == owner:
                yield name
