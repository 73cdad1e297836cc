"""Child processes: forked ones go on in a file of their own, spawned ones begin one."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import process, util
from typing import Any

from tensortrail.tracer.events.recorder import FORK, Recorder
from tensortrail.tracer.patching.patches import Patches
from tensortrail.tracer.recording import session
from tensortrail.tracer.recording.spawned_process import Armed

LIBRARY = "multiprocessing.process"
AFTER_ALL_OTHERS = -1000


def install(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(process.BaseProcess, "start", _starting)
    patches.wrap(os, "_exit", _leaving)
    util.register_after_fork(recorder, _close_at_exit)


def _starting(original: Any, child: process.BaseProcess) -> Any:
    running = session.running()
    if running is None or not running.recorder.active:
        return original(child)
    method = getattr(child, "_start_method", None) or multiprocessing.get_start_method()
    if method == "fork":
        running.recorder.local.child = child.name
        try:
            return original(child)
        finally:
            running.recorder.local.child = FORK
    run, own = child.run, vars(child).get("run")
    header, focus = running.child_header(child.name), running.recorder.focus
    child.run = Armed(run, running.directory, header, focus)  # type: ignore[method-assign]
    try:
        return original(child)
    finally:
        vars(child).pop("run", None)
        if own is not None:
            child.run = own  # type: ignore[method-assign]


def _leaving(original: Any, *args: Any) -> Any:
    if running := session.running():
        running.recorder.close()
    return original(*args)


def _close_at_exit(recorder: Recorder) -> None:
    """In a forked child of multiprocessing, which leaves without `atexit`."""
    util.Finalize(None, recorder.close, exitpriority=AFTER_ALL_OTHERS)
