"""The mode is put on in a thread, taken off, and kept on where torch takes it off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.mode_stack import ours, put_on, take_off
from tensortrail.tracer.watching.mode import TrailMode


def arm(recorder: Recorder) -> None:
    """The running thread is recorded from now on."""
    if recorder.of_thread.mode is None:
        recorder.of_thread.mode = TrailMode(recorder)
        stage = recorder.of_thread.stage = recorder.stage
        lower = recorder.of_thread.lower = stage.arm() if stage else None
        if lower is not None:  # simulated devices are below: the trail sees what comes of them
            put_on(lower)
        put_on(recorder.of_thread.mode, below=lower is not None)


def disarm(recorder: Recorder) -> None:
    """A mode left on would be taken down with the thread, which needs the GIL by then."""
    recorder.of_thread.mode = None
    if recorder.of_thread.lower is not None:
        take_off(recorder.of_thread.lower)
        recorder.of_thread.lower = None
        recorder.of_thread.stage.disarm()  # the thread may end after the recording
    if (mode := ours(TrailMode)) is not None:
        take_off(mode)


@contextmanager
def kept_on(recorder: Recorder) -> Iterator[None]:
    """While torch runs a function that the mode saw, the mode is off: but the user's code inside
    belongs to the trail too."""
    mode = recorder.of_thread.mode
    if mode is None or ours(TrailMode) is not None:
        yield
        return
    lower = recorder.of_thread.lower
    if lower is not None and ours(type(lower)) is not None:
        lower = None
    if lower is not None:
        put_on(lower)
    put_on(mode, below=lower is not None)
    try:
        yield
    finally:
        take_off(mode)
        if lower is not None:
            take_off(lower)
