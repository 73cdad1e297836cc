"""Moves of plain tensors are written down in one go: loops of small moves are what a recording is
dearest for.

The trail gets what `Move` and `Recorder.note` would write. Where something else asks about moves (a
focus, an audit, fresh memory), `Recorder.short_ways` is off and they do it."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.trail.layout import CODE
from tensortrail.tracer.watching.watched_functions import MOVES, Args, Kwargs, is_non_blocking

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder

MOVE, COPY = CODE[Did.MOVE], CODE[Did.COPY]
PIN_MEMORY = Tensor.pin_memory


def moved(
    recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, made: Any, frame: FrameType
) -> None:
    """`func`, called in this frame on a plain tensor, gave `made`."""
    storages, tensor = recorder.storages, args[0]
    pair = storages.pair(tensor, made) if made is not tensor else None
    if pair is None:
        MOVES.after(recorder, func, args, kwargs, storages.entries(tensor), made)
        return
    old, new = pair
    if old.device != new.device or func is PIN_MEMORY:
        blocking = not ((kwargs or len(args) > 2) and is_non_blocking(func, args, kwargs))
        _note(recorder, MOVE, func, pair, frame, None if blocking else {"non_blocking": True})
    elif old.name and new is not old:
        _note(recorder, COPY, func, pair, frame, None)
    if recorder.loads.some:
        recorder.loads.copied(old, new)
    if not recorder.alert:
        recorder.changed()


def _note(
    recorder: Recorder,
    code: int,
    func: Any,
    pair: tuple[Entry, Entry],
    frame: FrameType,
    facts: dict[str, Any] | None,
) -> None:
    if not recorder.active:
        return
    local = recorder.of_thread
    if acting := local.library_hook:
        facts = {**(facts or {}), "hook": acting}
    context = local.context if local.context >= 0 else recorder.context()
    known = recorder.sites.get((id(frame.f_code), frame.f_lasti))
    site = known[0] if known is not None else recorder.site(frame)
    numbers = pair[1].number, pair[0].number
    recorder.writer.event(code, context, site, *numbers, recorder.op(func), facts)
