"""Settings of a call of `save_pretrained` that a run has recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tensortrail.findings import Setting
from tensortrail.rules._calls import carrier
from tensortrail.rules.shards._saving import KEEP_GROUPS_WHOLE
from tensortrail.rules.timeline import Event, Timeline

SAVE = "save_pretrained"


def keep_whole(timeline: Timeline, event: Event, cut: Event | None) -> tuple[Setting, ...]:
    """What keeps groups of weights together in this save: the limit that the cut calls for, or
    no conversion at all."""
    return tuple(of_call(timeline, event, *_limit(cut), KEEP_GROUPS_WHOLE[0]))


def of_call(timeline: Timeline, event: Event, *settings: Setting) -> Iterator[Setting]:
    """These settings at the call of the event, as far as this release takes them."""
    positions = event.facts.get("positions")
    positions = positions if isinstance(positions, dict) else {}
    at = carrier(timeline, event.site, SAVE)
    for each in settings:
        if each.name in positions:
            yield replace(each, call=SAVE, at=at, position=int(positions[each.name]))


def _limit(cut: Event | None) -> Iterator[Setting]:
    used, works = (cut.facts.get(key) if cut else None for key in ("max_shard_size", "works"))
    if works:
        yield Setting(
            library="transformers",
            name="max_shard_size",
            value=str(works),
            why="bytes: the smallest limit that keeps every group of this model whole "
            f"(was {used!r})",
            where=SAVE,
        )
