"""Optimizers are made of the parameters that a model has then, and step over these."""

from __future__ import annotations

from typing import Any

from torch.compiler import is_compiling
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.looking import looking_after
from tensortrail.tracer.noticing.trained_parameters import TrainedParameters
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch"


def install(recorder: Recorder, patches: Patches) -> None:
    trained = TrainedParameters(recorder)

    def given(_: Recorder, result: Any, optimizer: Optimizer, *__: Any, **___: Any) -> None:
        recorder.models.look_here()
        trained.given(optimizer, optimizer.param_groups[-1])

    def stepped(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if recorder.active and not is_compiling():
            recorder.optimizer_steps += 1
            recorder.guarded(lambda _: trained.stepped(optimizer))

    patches.wrap(Optimizer, "add_param_group", looking_after(recorder, given))
    recorder.at_close.append(register_optimizer_step_post_hook(stepped).remove)
    recorder.at_close.append(trained.at_end)
