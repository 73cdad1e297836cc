"""The history of a tensor in a run: who put it where it is."""

from __future__ import annotations

from collections.abc import Iterable

from tensortrail.rules.timeline import Did, Event, Storage, Timeline

PLACING = (Did.CREATE, Did.MOVE, Did.LOAD, Did.SWAP, Did.STAGE, Did.RESIZE)
"""Events that put bytes where they are."""


def placing(events: Iterable[Event]) -> list[Event]:
    """What put the bytes where they are, the first first. A parameter that takes over moved bytes
    only follows the move, and is left out."""
    history = list(events)
    moved = {each.storage for each in history if each.did is Did.MOVE}
    return [
        each
        for each in history
        if each.did in PLACING and not (each.did is Did.SWAP and each.storage in moved)
    ]


def put_there(timeline: Timeline, storage: Storage, until: Event) -> Event | None:
    """What brought the storage to the device it is on."""
    return put_last(timeline.history(storage, until))


def put_last(events: Iterable[Event]) -> Event | None:
    """The last event of a history that put the bytes on the device they are on."""
    history = placing(events)
    return next((each for each in reversed(history) if each.did is not Did.RESIZE), None)


def not_loaded(timeline: Timeline, storage: Storage | None, until: Event) -> Event | None:
    """The load that should have given a weight its values, and did not have it."""
    history = timeline.history(storage, until) if storage else ()
    return next((each for each in reversed(history) if "missing" in each.facts), None)


def lacking_file(timeline: Timeline, storage: Storage | None, until: Event) -> tuple[str, str]:
    """The file that the line of the event has read weights from, and the key that it lacks for
    this one; ("", "") where no file was read there, or one had it."""
    if storage is None or not timeline.is_named(storage) or until.site is None:
        return "", ""
    name = timeline.name(storage)
    read = [each for each in timeline.events(Did.LOAD) if _is_at(each, until)]
    keys = {str(each.facts["key"]) for each in read if "key" in each.facts}
    if not keys or any(f".{name}".endswith(f".{key}") for key in keys):
        return "", ""
    return str(read[-1].facts.get("path", "")), name.partition(".")[2]


def _is_at(read: Event, until: Event) -> bool:
    where = [(each.site.file, each.site.line) for each in (read, until) if each.site]
    return where[:1] == where[1:] and read.process == until.process and read.time <= until.time
