"""When the compiler works: a phase of the trail, told by the compiler's own callbacks."""

from __future__ import annotations

from typing import Any

from tensortrail.tracer.patches import Patches
from tensortrail.tracer.recorder import Recorder

LIBRARY = "torch._dynamo.callback"


def install(recorder: Recorder, patches: Patches) -> None:
    from torch._dynamo.callback import callback_handler

    def begins(*_: Any) -> None:
        if recorder.active:
            recorder.guarded(lambda r: r.begin("compile"))

    def ends(*_: Any) -> None:
        if recorder.active:
            recorder.guarded(lambda r: r.end())

    callback_handler.register_start_callback(begins)
    callback_handler.register_end_callback(ends)

    def forget() -> None:
        callback_handler.remove_start_callback(begins)
        callback_handler.remove_end_callback(ends)

    recorder.at_close.append(forget)
