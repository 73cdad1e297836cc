"""A load that runs no code but torch's is told of when it is done: how each tensor was put together
from nothing and a storage is of no use to anybody.

The mode is off meanwhile: it would see some twenty calls a tensor."""

from __future__ import annotations

import os
from typing import Any

import torch

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.mode_stack import stepped_aside
from tensortrail.tracer.watching.mode import TrailMode

TRUSTS_ALL = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def runs_only_torch(recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether `torch.load` with these arguments unpickles nothing but what torch allows by itself,
    for a device that is there."""
    where = args[1] if len(args) > 1 else kwargs.get("map_location")
    trusts = kwargs.get("weights_only") is False or len(args) > 2 or "pickle_module" in kwargs
    return (
        recorder.of_thread.lower is None
        and not trusts
        and TRUSTS_ALL not in os.environ
        and not callable(where)
        and all(map(_is_torch_s_own, torch.serialization.get_safe_globals()))
    )


def _is_torch_s_own(allowed: Any) -> bool:
    kind = allowed[0] if isinstance(allowed, tuple) else allowed
    return str(getattr(kind, "__module__", "")).partition(".")[0] == "torch"


def with_modes_aside(recorder: Recorder, load: Any, *args: Any, **kwargs: Any) -> Any:
    local = recorder.of_thread
    before, local.inside_load = local.inside_load, True
    try:
        with stepped_aside(TrailMode):
            return load(*args, **kwargs)
    finally:
        local.inside_load = before
