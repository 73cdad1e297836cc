"""What is known of the running thread."""

from __future__ import annotations

import threading
from typing import Any

from tensortrail.tracer.identity.sites import Place

FORK = "fork"


class Resizes:
    """Storages that one line resizes."""

    __slots__ = ("filled", "site")

    def __init__(self, filled: bool) -> None:
        self.filled = filled
        self.site = 0


class OfThread(threading.local):
    """One for all threads, and another in each."""

    def __init__(self) -> None:
        self.name = _thread_name()
        self.phases: list[str] = []
        self.base = "run"
        self.context = -1
        self.started_by: Place | None = None
        """The site that started the thread: the user's line behind what only libraries do here."""
        self.inside_module = 0
        self.inside_load = False
        """A reader makes tensors, which are told of when it is done."""
        self.resizes: Resizes | None = None
        """Where one line resizes several storages."""
        self.mode: Any = None
        """The mode that records this thread."""
        self.lower: Any = None
        """The mode of simulated devices below it."""
        self.stage: Any = None
        """The rehearsal that this mode is of, also after it has ended."""
        self.child = FORK
        """What the next forked child is called."""
        self.library_hook = ""
        """The hook of a library that runs, and on which module."""


def _thread_name() -> str:
    """`current_thread()` would give threads that Python did not start a place among its own."""
    own = threading.get_ident()
    found = (each.name for each in threading.enumerate() if each.ident == own)
    return next(found, f"thread {threading.get_native_id()}")
