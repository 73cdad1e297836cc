"""What an observer asks of the recording; the recorder gives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.identity.storages import Entry, Storages


class Notes(Protocol):
    optimizer_steps: int

    @property
    def storages(self) -> Storages: ...

    def note(
        self,
        did: Did,
        entry: Entry | None = None,
        other: Entry | None = None,
        op: Any = "",
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Write down what just happened in the innermost frame of the program."""

    def note_at(
        self,
        site: int,
        did: Did,
        entry: Entry | None = None,
        other: Entry | None = None,
        op: str = "",
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """As `note`, at a place that is known by its number."""

    def line(self, file: str, line: int, function: str) -> int:
        """The number of a line of the program."""
        ...

    def site_here(self) -> int:
        """The number of the place that runs now."""
        ...

    def user_here(self) -> Place | None:
        """The user's line that runs now."""

    def op_text(self, op: Any) -> str:
        """An operation as events name it."""
        ...

    def changed(self) -> None:
        """Something changed: operations may have to be looked at from now on, or no longer."""

    def flush(self) -> None:
        """What was noted must reach the file now: the program may be about to end."""
