"""A rehearsal without a recording arms threads and backward passes itself."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import torch

from tensortrail.tracer.identity.unrecorded_frames import without_our_frames
from tensortrail.tracer.patching.mode_stack import ours, put_on, take_off
from tensortrail.tracer.patching.thread_starts import start_between
from tensortrail.tracer.rehearsal.operations.ask_mode import AskMode
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements


class Arming(Protocol):
    """What puts a rehearsal on in a thread."""

    @property
    def simulation(self) -> Simulation: ...
    def arm(self) -> AskMode: ...
    def disarm(self) -> None: ...


def install(stage: Arming, replaced: Replacements) -> None:
    start, run_backward = threading.Thread.start, torch.autograd._engine_run_backward
    here = threading.local()

    def begin() -> None:
        here.asking = stage.arm()
        put_on(here.asking)

    def end() -> None:
        take_off(here.asking)
        stage.disarm()

    def started(thread: threading.Thread) -> Any:
        return start_between(start, thread, begin, end, without_our_frames)

    def backward(*args: Any, **kwargs: Any) -> Any:
        """Torch takes the mode off for the call; hooks and custom functions run inside of it."""
        if ours(AskMode) is not None:
            return run_backward(*args, **kwargs)
        asking = AskMode(stage.simulation)
        put_on(asking)
        try:
            return run_backward(*args, **kwargs)
        finally:
            take_off(asking)

    replaced.put(threading.Thread, "start", started)
    replaced.put(torch.autograd, "_engine_run_backward", backward)
