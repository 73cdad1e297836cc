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
    """What brought the type into the run, in words to be put behind a tensor that was computed;
    weights have types of their own. "" where it is not known."""
    for event in timeline.events(*MAKES):
        storage = event.storage
        if event.time >= until.time:
            break
        of_type = storage is not None and storage.dtype == kind and event.process == until.process
        if of_type and storage is not None and storage.shape and not timeline.is_named(storage):
            return f" (the first {kind} tensor of this run: {doer(event)})"
    return ""


def _converts(event: Event) -> bool:
    before, after = event.other, event.storage
    return before is not None and after is not None and after.dtype != before.dtype
