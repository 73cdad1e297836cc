"""Moves of plain tensors are written down in one go: loops of small moves are what a recording is
dearest for.

The trail gets what `Move` and `Recorder.note` would write. Where something else asks about moves (a
focus, an audit, fresh memory), `Recorder.short_ways` is off and they do it."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.storages import Pair
from tensortrail.tracer.trail.layout import CODE
from tensortrail.tracer.watching.move_watches import MOVES, asks_device, is_non_blocking
from tensortrail.tracer.watching.watch import Args, Kwargs

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder

MOVE, COPY = CODE[Did.MOVE], CODE[Did.COPY]
PIN_MEMORY = Tensor.pin_memory


def moved(
    recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, made: Any, at: FrameType | int
) -> Pair | None:
    """`func`, called in this frame or at this site on a plain tensor, gave `made`. Gives the
    storages, if it made a plain tensor."""
    storages, tensor = recorder.storages, args[0]
    if made is tensor:
        _asked(recorder, func, args, kwargs, at)
        return None
    pair = storages.pair(tensor, made)
    if pair is None:
        MOVES.after(recorder, func, args, kwargs, storages.entries(tensor), made)
        return None
    old, new, description = pair
    if old.device != new.device or func is PIN_MEMORY:
        waits = not (kwargs or len(args) > 2) or not is_non_blocking(func, args, kwargs)
        note_pair(recorder, MOVE, func, pair, at, None if waits else {"non_blocking": True})
    elif old.name and new is not old:
        note_pair(recorder, COPY, func, pair, at)
    elif description is not None:
        recorder.writer.describe(new.number, description)
    if recorder.loads.files:
        recorder.loads.copied(old, new)
    if not recorder.alert:
        recorder.changed()
    return pair


def note_pair(
    recorder: Recorder,
    code: int,
    func: Any,
    pair: Pair,
    at: FrameType | int,
    facts: dict[str, Any] | None = None,
) -> None:
    if not recorder.active:
        return
    local, writer = recorder.of_thread, recorder.writer
    old, new, description = pair
    context = local.context
    if context < 0:
        context = recorder.context()
    if isinstance(at, int):
        site = at
    else:
        known = recorder.sites.get((id(at.f_code), at.f_lasti))
        site = known[0] if known is not None else recorder.site(at)
    if facts or local.library_hook or writer.thinner.active:
        if acting := local.library_hook:
            facts = {**(facts or {}), "hook": acting}
        if description is not None:
            writer.describe(new.number, description)
        writer.event(code, context, site, new.number, old.number, recorder.op(func), facts)
        return
    said = code, context, site, func, description
    kind = writer.kinds.get(said)
    if kind is None:
        numbers = code, context, site, recorder.op(func)
        kind = writer.kinds[said] = writer.kind(*numbers, description or ())
    writer.short(kind, new.number, old.number)


def _asked(recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, at: FrameType | int) -> None:
    """Nothing had to move. A storage that was never met is told of all the same."""
    entry = recorder.storages.entry(args[0])
    acting = recorder.of_thread.library_hook
    if entry is None or acting or not asks_device(func, args, kwargs):
        return
    site = _site(recorder, at)
    if not recorder.often(Did.ASKED, func, site=site):
        recorder.note_at(site, Did.ASKED, entry, op=func)


def _site(recorder: Recorder, at: FrameType | int) -> int:
    if isinstance(at, int):
        return at
    known = recorder.sites.get((id(at.f_code), at.f_lasti))
    return known[0] if known is not None else recorder.site(at)
