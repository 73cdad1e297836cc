"""A child process that is forked goes on recording, into a trail of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from tensortrail.tracer.events.of_thread import FORK
from tensortrail.tracer.trail.writer import new_writer

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder


class Recording(Protocol):
    recorder: Recorder
    directory: str
    header: dict[str, Any]
    limit: int


@cache
def follow_forks(running: Callable[[], Recording | None]) -> None:
    """Once in a process: what was registered for forks stays so."""

    def in_child() -> None:
        recording = running()
        if recording is not None and recording.recorder.active:
            _go_on(recording)

    os.register_at_fork(after_in_child=in_child)


def _go_on(recording: Recording) -> None:
    recorder = recording.recorder
    old = recorder.writer
    first_storage = next(old.storage_numbers)  # after all that were given
    recording.header = {
        **recording.header,
        "pid": os.getpid(),
        "parent": recording.header.get("pid"),
        "worker": recorder.of_thread.child,
        "first_storage": first_storage,
    }
    recorder.of_thread.child = FORK
    try:
        writer = new_writer(recording.directory, recording.header, recording.limit, first_storage)
    except OSError:
        recorder.active = False
        return
    finally:
        old.abandon()
    recorder.forked(writer)
