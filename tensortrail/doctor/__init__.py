"""Checkpoints, saves and tensor classes: what would go wrong, found out before it does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

    from tensortrail.doctor.checkpoint.examine import Examination
    from tensortrail.doctor.saves.plan import SavePlan

__all__ = ["examine", "plan_save"]


def examine(
    path: str | os.PathLike[str],
    *,
    codes: Collection[str] | None = None,
    model: str = "",
    values: bool = False,
    manifest: bool = False,
) -> Examination:
    """What `tensortrail doctor PATH` finds: `found.fine`, `found.findings`, `found.ran`,
    `found.problems`. Raises OSError where there is no checkpoint.

    `codes`: only these checks. `model`, `values` and `manifest` (to verify one) are the options of
    that command."""
    from tensortrail.doctor.checkpoint.examine import examine

    return examine(os.fspath(path), codes, model=model, values=values, manifest=manifest)


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
