"""The backward pass runs hooks, custom functions and recomputation, which are recorded too."""

from __future__ import annotations

from typing import Any

import torch

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.noticing.refused_gradients import note_refused_gradients
from tensortrail.tracer.patching.patches import Patches
from tensortrail.tracer.watching.arming import kept_on

LIBRARY = "torch.autograd"


def install(recorder: Recorder, patches: Patches) -> None:
    def running(original: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("accumulate_grad"):
            recorder.guarded(lambda each: each.phases.trains())
        with kept_on(recorder):
            try:
                result = original(*args, **kwargs)
            except RuntimeError as error:
                recorder.guarded(_refused, args, error)
                raise
        recorder.guarded(lambda of: of.cut_graphs.ran_backward(args[0] if args else ()))
        recorder.guarded(lambda of: of.refused_backward.ran())
        return result

    patches.wrap(torch.autograd, "_engine_run_backward", running)


def _refused(recorder: Recorder, args: Any, error: RuntimeError) -> None:
    if args:
        recorder.cut_graphs.refused(args[0], error)
        recorder.refused_backward.refused(args[0], error)
        asked = args[4] if len(args) > 4 else ()
        note_refused_gradients(recorder, recorder.cut_graphs, args[0], asked, error)
