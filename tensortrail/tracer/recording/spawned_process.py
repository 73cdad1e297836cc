"""In a child process that was spawned: begins to record once it has torch, as its parent does.

Pickled by the parent with the child, and without torch itself: a child may never need it."""

from __future__ import annotations

from typing import Any

from tensortrail.tracer.events.focus import Focus
from tensortrail.tracer.patching.late_imports import LateHooks


class Armed:
    """Stands in for the `run` of a process."""

    def __init__(self, run: Any, directory: str, header: dict[str, Any], focus: Focus) -> None:
        self.run = run
        self.directory = directory
        self.header = header
        self.focus = focus
        self.session: Any = None

    def __call__(self) -> None:
        late = LateHooks()
        late.install()
        try:
            late.when_imported("torch", self.begin)
            self.run()
        finally:
            late.remove()
            if self.session is not None:
                self.session.stop()

    def begin(self) -> None:
        from tensortrail.tracer.recording import session

        self.session = session.resume(self.directory, self.header, self.focus)
