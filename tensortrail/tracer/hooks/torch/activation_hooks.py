"""Functions of the program that give saved activations back to the backward pass."""

from __future__ import annotations

from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.noticing.escaped.hooked_activations import HOOKS
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch.autograd.graph"


def install(recorder: Recorder, patches: Patches) -> None:
    from torch.autograd.graph import saved_tensors_hooks

    def entering(original: Any, hooks: Any, *args: Any) -> Any:
        recorder.guarded(_entered, hooks)
        return original(hooks, *args)

    patches.wrap(saved_tensors_hooks, "__enter__", entering)
    recorder.at_close.append(HOOKS.clear)


def _entered(recorder: Recorder, hooks: Any) -> None:
    unpack = hooks.unpack_hook
    code = getattr(unpack, "__code__", None)
    if code is not None and OWNERS[code.co_filename] == USER:
        place = (code.co_filename, code.co_firstlineno, code.co_name)
        if place not in HOOKS:
            HOOKS.append(place)
