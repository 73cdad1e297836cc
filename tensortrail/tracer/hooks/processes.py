"""Child processes: forked ones go on in a file of their own, spawned ones begin one."""

from __future__ import annotations

import os
from multiprocessing import process, util
from typing import Any

from tensortrail.tracer import session
from tensortrail.tracer.patches import Patches
from tensortrail.tracer.recorder import Recorder

LIBRARY = "multiprocessing.process"
AFTER_ALL_OTHERS = -1000


class Armed:
    """The `run` of a process that is started by spawn: pickled with it, begins a recording."""

    def __init__(self, run: Any, directory: str, header: dict[str, Any]) -> None:
        self.run = run
        self.directory = directory
        self.header = header

    def __call__(self) -> None:
        running = session.resume(self.directory, self.header)
        try:
            self.run()
        finally:
            if running is not None:
                running.stop()


def install(recorder: Recorder, patches: Patches) -> None:
    def starting(original: Any, child: process.BaseProcess) -> Any:
        method = getattr(child, "_start_method", None)
        running = session.running()
        if running is None or method not in ("spawn", "forkserver") or "run" in vars(child):
            return original(child)
        running.recorder.writer.flush()
        armed = Armed(child.run, running.directory, running.child_header(child.name))
        child.run = armed  # type: ignore[method-assign]
        try:
            return original(child)
        finally:
            vars(child).pop("run", None)

    patches.wrap(process.BaseProcess, "start", starting)
    patches.wrap(os, "_exit", _leaving)
    util.register_after_fork(recorder, _close_at_exit)


def _leaving(original: Any, *args: Any) -> Any:
    if running := session.running():
        running.recorder.close()
    return original(*args)


def _close_at_exit(recorder: Recorder) -> None:
    """In a forked child of multiprocessing, which leaves without `atexit`."""
    util.Finalize(None, recorder.close, exitpriority=AFTER_ALL_OTHERS)
