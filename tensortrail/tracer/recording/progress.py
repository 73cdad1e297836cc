"""A line on standard error now and then shows that a long run is recorded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

from tensortrail.tracer.reading.sentences import size

if TYPE_CHECKING:
    from tensortrail.tracer.trail.writer import TrailWriter

FIRST = 60.0


class Progress:
    """After one minute, two, four, eight: rarer and rarer, and only for people at a terminal."""

    def __init__(self, writer: TrailWriter, stream: TextIO, first: float = FIRST) -> None:
        self._writer = writer
        self._stream = stream
        self._began = time.monotonic()
        self._due = first
        if stream.isatty():
            writer.flushed = self.tell

    def tell(self) -> None:
        passed = time.monotonic() - self._began
        if passed < self._due:
            return
        self._due *= 2
        events, written = self._writer.events, size(self._writer.size)
        minutes = f"{passed / 60:.0f} min" if passed >= 60 else f"{passed:.1f} s"
        try:
            self._stream.write(f"tensortrail: {minutes}, {events:,} events, {written}\n")
        except (OSError, ValueError):  # closed by the program
            self._writer.flushed = lambda: None
