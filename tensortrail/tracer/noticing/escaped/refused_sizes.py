"""Weights of other sizes in a checkpoint of transformers, which `from_pretrained` refused."""

from __future__ import annotations

from typing import Any

from tensortrail.rules.shared.sentences import first_of
from tensortrail.rules.shared.sizes import dimensions
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import frames_of, told

SAYS = "ignore_mismatched_sizes"


def refused_size(error: BaseException, _: Storages) -> dict[str, Any] | None:
    if not isinstance(error, RuntimeError) or SAYS not in str(error):
        return None
    for frame in reversed(frames_of(error)):
        for value in list(frame.f_locals.values()):
            sizes = getattr(value, "mismatched_keys", None)
            if isinstance(sizes, (set, list)) and sizes:
                return _told(sorted(sizes, key=str))
    return None


def _told(sizes: list[Any]) -> dict[str, Any] | None:
    rows = [each for each in sizes if isinstance(each, tuple) and len(each) == 3]
    shown = [f"`{name}` {dimensions(saved)} for {dimensions(own)}" for name, saved, own in rows]
    if not shown:
        return None
    return told(
        f"the checkpoint has other shapes than the model: {first_of(shown, 2)}",
        "give `from_pretrained` the settings that the checkpoint was saved with (`num_labels`, "
        "`vocab_size`), or `ignore_mismatched_sizes=True`, which makes these weights anew",
        [str(name) for name, *_ in rows],
    )
