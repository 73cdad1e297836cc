"""Checkpoints, saves and tensor classes: what would go wrong, found out before it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortrail.doctor.saves.plan import SavePlan

__all__ = ["plan_save"]


def plan_save(
    model: Any, max_shard_size: int | str = "50GB", *, by_file: bool | None = None
) -> SavePlan:
    """What `model.save_pretrained(..., max_shard_size=...)` will do: `plan.works`, `plan.wrong`,
    `plan.shards.below` and `.above`, `plan.memory`, `plan.disk`.

    `model` is one of transformers, or the path of its folder or configuration. `by_file`: whether
    weights are offloaded, so that each file is converted alone; None takes what the model is, and
    yes for a path."""
    from tensortrail.doctor.saves.plan import plan_save

    return plan_save(model, max_shard_size, by_file=by_file)
