"""Putting the mode on in a thread, taking it off, and keeping it on where torch takes it off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tensortrail.tracer.mode import TrailMode
from tensortrail.tracer.recorder import Recorder
from tensortrail.tracer.stack import ours, put_on, take_off


def arm(recorder: Recorder) -> None:
    """The running thread is recorded from now on."""
    if recorder.local.mode is None:
        recorder.local.mode = TrailMode(recorder)
        put_on(recorder.local.mode)


def disarm(recorder: Recorder) -> None:
    """A mode left on would be taken down with the thread, which needs the GIL by then."""
    recorder.local.mode = None
    if (mode := ours(TrailMode)) is not None:
        take_off(mode)


@contextmanager
def kept_on(recorder: Recorder) -> Iterator[None]:
    """While torch runs a function that the mode saw, the mode is off: but the user's code inside
    belongs to the trail too."""
    mode = recorder.local.mode
    if mode is None or ours(TrailMode) is not None:
        yield
        return
    put_on(mode)
    try:
        yield
    finally:
        take_off(mode)
