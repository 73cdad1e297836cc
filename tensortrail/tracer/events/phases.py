"""Phases: a thread loads, trains, writes a checkpoint, runs a test; each begins and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.of_thread import OfThread
from tensortrail.tracer.noticing.notes import Notes


class Phases:
    def __init__(self, notes: Notes, of_thread: OfThread) -> None:
        self._notes = notes
        self._of_thread = of_thread
        self.changed: Callable[[str, bool], None] = lambda name, began: None
        """Called when an outermost phase of a thread begins, and after it ended."""

    @contextmanager
    def within(self, name: str, facts: Mapping[str, Any] | None = None) -> Iterator[None]:
        self.begin(name, facts)
        try:
            yield
        finally:
            self.end()

    def begin(self, name: str, facts: Mapping[str, Any] | None = None) -> None:
        local = self._of_thread
        if not local.phases:
            self.changed(name, True)
        local.phases.append(name)
        local.context = -1
        with suppress(Exception):
            self._notes.note(Did.PHASE, facts={"began": name, **(facts or {})})

    def end(self) -> None:
        local = self._of_thread
        if local.phases:
            name = local.phases[-1]
            with suppress(Exception):
                self._notes.note(Did.PHASE, facts={"ended": local.phases.pop()})
            local.context = -1
            if not local.phases:
                self.changed(name, False)
                self._notes.flush()

    def trains(self) -> None:
        """A backward pass began: this thread trains from now on."""
        if self._of_thread.base != "train":
            self._of_thread.base = "train"
            self._of_thread.context = -1
