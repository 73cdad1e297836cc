"""Threads: modes belong to one thread, so each new one gets its own."""

from __future__ import annotations

import threading
from typing import Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.arming import arm, disarm
from tensortrail.tracer.patches import Patches
from tensortrail.tracer.recorder import Recorder
from tensortrail.tracer.sites import Place

LIBRARY = "threading"


def install(recorder: Recorder, patches: Patches) -> None:
    def starting(original: Any, thread: threading.Thread) -> Any:
        if not recorder.active:
            return original(thread)
        by = recorder.guarded(_starts, thread)
        run, own = thread.run, vars(thread).get("run")

        def as_it_was() -> None:
            vars(thread).pop("run", None)
            if own is not None:
                thread.run = own  # type: ignore[method-assign]

        def armed_run() -> None:
            as_it_was()
            recorder.guarded(_arm, by)
            try:
                run()
            finally:
                recorder.guarded(disarm)

        thread.run = armed_run  # type: ignore[method-assign]
        try:
            return original(thread)
        except BaseException:
            as_it_was()
            raise

    patches.wrap(threading.Thread, "start", starting)


def _starts(recorder: Recorder, thread: threading.Thread) -> Place | None:
    recorder.note(Did.WORKER, op=f"thread {thread.name}")
    return recorder.user_here()


def _arm(recorder: Recorder, by: Place | None) -> None:
    recorder.local.started_by = by
    arm(recorder)
