"""Steps of optimizers write weights without a call that modes see one by one."""

from __future__ import annotations

from typing import Any

from torch.compiler import is_compiling

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch"


def install(recorder: Recorder, patches: Patches) -> None:
    if recorder.last_writers is None:
        return
    from torch.optim.optimizer import register_optimizer_step_post_hook

    def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
        if recorder.active and not is_compiling():
            recorder.guarded(_stepped, optimizer)

    recorder.at_close.append(register_optimizer_step_post_hook(stepped).remove)


def _stepped(recorder: Recorder, optimizer: Any) -> None:
    if recorder.last_writers is None:
        return
    place = recorder.user_here()
    op = f"{type(optimizer).__name__}.step"
    for group in optimizer.param_groups:
        for tensor in group["params"]:
            if tensor.grad is not None:
                for entry in recorder.storages.entries(tensor):
                    recorder.last_writers.stepped(entry, op, place)
