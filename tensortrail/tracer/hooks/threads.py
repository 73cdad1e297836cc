"""Threads: modes belong to one thread, so each new one gets its own."""

from __future__ import annotations

import threading
from typing import Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.patches import Patches
from tensortrail.tracer.recorder import Recorder

LIBRARY = "threading"


def install(recorder: Recorder, patches: Patches) -> None:
    def starting(original: Any, thread: threading.Thread) -> Any:
        if not recorder.active:
            return original(thread)
        site = recorder.guarded(_site, thread)
        run = thread.run

        def armed_run() -> None:
            # The instance's own `run` was ours for the start only.
            thread.__dict__.pop("run", None)
            recorder.guarded(_arm, site)
            run()

        thread.run = armed_run  # type: ignore[method-assign]
        try:
            return original(thread)
        except BaseException:
            thread.__dict__.pop("run", None)
            raise

    patches.wrap(threading.Thread, "start", starting)


def _site(recorder: Recorder, thread: threading.Thread) -> int:
    recorder.note(Did.WORKER, op=f"thread {thread.name}")
    return recorder.site_here()


def _arm(recorder: Recorder, site: int) -> None:
    recorder.local.started_at = site
    recorder.arm()
