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
