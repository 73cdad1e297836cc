"""Settings of a call of `save_pretrained` that a run has recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tensortrail.findings import Setting
from tensortrail.rules.shards._saving import KEEP_GROUPS_WHOLE
from tensortrail.rules.shared.calls import carrier
from tensortrail.rules.shared.shard_plan import Limit, ShardPlan
from tensortrail.rules.shared.sizes import size
from tensortrail.rules.timeline import Event, Timeline

SAVE = "save_pretrained"
COLLECTS = "get_state_dict_offloaded_model"
COLLECTS_IS = f"from accelerate.utils.modeling import {COLLECTS}"


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
    facts = cut.facts if cut else {}
    below, above = (_of_run(facts.get(each)) for each in ("below", "above"))
    asked = int(facts.get("asked", 0))
    return limits(ShardPlan(asked, {}, {}, below, above), facts.get("max_shard_size", asked))


def _of_run(told: Any) -> Limit | None:
    return Limit(int(told[0]), int(told[1])) if told else None


def limits(plan: ShardPlan, asked: Any) -> Iterator[Setting]:
    """The nearest limit that keeps all groups whole, and the one on the other side of `asked`."""
    nearest = plan.nearest
    if nearest is None:
        return
    is_below = nearest == plan.below
    side, other_side = ("below", "above") if is_below else ("above", "below")
    other = plan.above if is_below else plan.below
    why = f"bytes: the nearest limit {side} {asked!r} that keeps every group of this model whole"
    why += f", in {_files(nearest)}; "
    why += f"the nearest {other_side} is {other.nbytes}, in {_files(other)}" if other else (
        f"none {other_side} it does"
    )  # fmt: skip
    yield _max_shard_size(nearest.nbytes, why)


def _files(limit: Limit) -> str:
    return "one file" if limit.files == 1 else f"{limit.files} files"


def filled_with_dicts(failed: Event) -> bool:
    """The index of this save was given dicts where it expects pairs of weight and file."""
    hidden = failed.facts.get("hidden")
    message = str(hidden.get("message")) if isinstance(hidden, dict) else ""
    return "index_of_dicts" in failed.facts or "dictionary update sequence element" in message


def one_file(timeline: Timeline, failed: Event) -> tuple[Setting, ...]:
    """What helps where a release cannot convert file by file: one file, or no conversion."""
    settings = [KEEP_GROUPS_WHOLE[0]]
    if whole := int(failed.facts.get("total", 0)):
        why = "bytes of all weights: with one file there is no index to make"
        settings.insert(0, _max_shard_size(whole, why))
    return tuple(of_call(timeline, failed, *settings))


def collected(timeline: Timeline, event: Event) -> Iterator[Setting]:
    """All offloaded weights brought first, where accelerate can do that."""
    if event.facts.get("collects"):
        at = carrier(timeline, event.site, SAVE)
        model = at.source.rpartition(f".{SAVE}(")[0] if at else ""
        needed = size(int(event.facts.get("total", 0)))
        yield from of_call(
            timeline,
            event,
            Setting(
                library="transformers",
                name="state_dict",
                value=f"{COLLECTS}({model or 'model'})",
                why=f"brings all weights first, which takes {needed} of memory",
                where=SAVE,
                imports=COLLECTS_IS,
            ),
        )


def _max_shard_size(value: int, why: str) -> Setting:
    return Setting(
        library="transformers", name="max_shard_size", value=str(value), why=why, where=SAVE
    )
