"""How much work one file may make. Past that it is judged in part, and that is said."""

from __future__ import annotations

import time

MOST_SECONDS = 6.0
_EVERY = 5000
"""Questions between two looks at the clock."""


class TooMuch(Exception):
    """The file takes more than its share."""


class Limit:
    """Watches over the file that is being judged, whatever other files its rules ask about."""

    def __init__(self) -> None:
        self._left = 0
        self._deadline = float("inf")
        self.notes: list[str] = []
        """What was left out so far, in words."""

    def begin(self, seconds: float | None = None) -> None:
        """A new file; without a limit on its time unless one is given."""
        self._left = _EVERY
        self._deadline = float("inf") if seconds is None else time.thread_time() + seconds
        self.notes = []

    def tick(self, questions: int = 1) -> None:
        """Something was asked, as dear as so many questions. Raises TooMuch past the limit."""
        self._left -= questions
        if self._left < 0:
            self._left = _EVERY
            if time.thread_time() > self._deadline:
                raise TooMuch(f"it takes more than {MOST_SECONDS:.0f} s")
