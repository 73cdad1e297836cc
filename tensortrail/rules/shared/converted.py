"""What made a tensor of a run the type of number that it is."""

from __future__ import annotations

from tensortrail.rules.shared.lines import doer, where
from tensortrail.rules.timeline import Did, Event, Storage, Timeline

CONVERTS = (Did.COPY, Did.MOVE, Did.SWAP)
"""A parameter is given the converted tensor, which may have been seen to be made."""
MAKES = (Did.CREATE, Did.LOAD, Did.COPY)


def converted_by(timeline: Timeline, storage: Storage | None, until: Event) -> str:
    """`Tensor.to` at train.py:12, put behind "made float16 by"; the line alone where only the
    module's conversion is known; "" if it always had this type."""
    history = list(timeline.history(storage, until)) if storage else []
    for did in CONVERTS:
        for each in reversed(history):
            if each.did is did and _converts(each):
                return where(each).strip() if did is Did.SWAP else f"by {doer(each)}"
    return ""


def made_at(timeline: Timeline, storage: Storage | None, until: Event) -> str:
    """The line that made it, if it has had its type from there on."""
    history = list(timeline.history(storage, until)) if storage else []
    made = next((each for each in history if each.did in (Did.CREATE, Did.LOAD)), None)
    if made is None or made.storage is None or storage is None:
        return ""
    return where(made).strip() if made.storage.dtype == storage.dtype else ""


def first_of_type(timeline: Timeline, kind: str, until: Event) -> str:
    """What brought the type into the run, in words to be put behind a tensor that was computed. ""
    where a weight has that type: it may come from there."""
    made = [
        event
        for event in timeline.events(*MAKES)
        if event.storage is not None and event.storage.dtype == kind and event.storage.shape
        if event.process == until.process and event.time < until.time
    ]
    if not made or any(each.storage and timeline.is_named(each.storage) for each in made):
        return ""
    return f" (the first {kind} tensor of this run: {doer(made[0])})"


def _converts(event: Event) -> bool:
    before, after = event.other, event.storage
    return before is not None and after is not None and after.dtype != before.dtype
