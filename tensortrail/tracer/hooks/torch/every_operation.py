"""A dispatch mode records every operation in the steps that were asked for, and is on only then.

A step ends with an optimizer's step; a program without one has a single step."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch"


class OperationsMode(TorchDispatchMode):  # type: ignore[misc]
    supports_higher_order_operators = True

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        # Without it the compiler leaves frames uncompiled for ever.
        return True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if self._recorder.active:
            self._recorder.guarded(_note, func, result)
        return result


def _note(recorder: Recorder, func: Any, result: Any) -> None:
    first = result[0] if isinstance(result, (list, tuple)) and result else result
    entry = recorder.storages.entry(first) if isinstance(first, torch.Tensor) else None
    recorder.note(Did.OP, entry, op=str(func))


def install(recorder: Recorder, patches: Patches) -> None:
    if not recorder.steps:
        return
    mode = OperationsMode(recorder)
    state = {"step": 0, "on": False}

    def next_step(*_: Any) -> None:
        state["step"] += 1
        wanted = state["step"] in recorder.steps and recorder.active
        if wanted and not state["on"]:
            mode.__enter__()
            state["on"] = True
        elif state["on"] and not wanted and _get_current_dispatch_mode() is mode:
            mode.__exit__(None, None, None)
            state["on"] = False

    def end() -> None:
        handle.remove()
        if state["on"] and _get_current_dispatch_mode() is mode:
            mode.__exit__(None, None, None)
            state["on"] = False

    handle = register_optimizer_step_post_hook(next_step)
    recorder.at_close.append(end)
    next_step()
