"""Which pieces of tensors a rank writes or reads is planned from shapes and places, by torch alone.

The mode is off meanwhile: it would see some fifteen calls a tensor, most of them arithmetic on
indices."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.patching.mode_stack import stepped_aside
from tensortrail.tracer.patching.patches import Around
from tensortrail.tracer.watching.mode import TrailMode

PLANS_ITSELF = "__create_write_items__", "__create_chunk_list__"
"""What objects have that say themselves which pieces they have."""


def planning(recorder: Recorder) -> Around:
    """Around the method of a planner that makes the plan of its rank."""
    from torch.distributed.tensor import DTensor

    known = PLAIN | {DTensor}

    def around(original: Any, planner: Any) -> Any:
        if not recorder.guarded(_asks_only, known, getattr(planner, "state_dict", None)):
            return original(planner)
        with stepped_aside(TrailMode):
            return original(planner)

    return around


def _asks_only(recorder: Recorder, known: set[type], state_dict: Any) -> bool:
    """Whether no other kinds of tensors are asked for anything."""
    if recorder.of_thread.lower is not None or not isinstance(state_dict, dict):
        return False
    return not any(map(_is_asked, set(map(type, state_dict.values())) - known))


def _is_asked(kind: type) -> bool:
    return issubclass(kind, Tensor) or any(hasattr(kind, name) for name in PLANS_ITSELF)
