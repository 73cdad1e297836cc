"""Standard error as a recorded program leaves it: perhaps closed, full or replaced."""

from __future__ import annotations

import sys
from contextlib import suppress


def write_beside(text: str) -> None:
    """What cannot be written is dropped: a program goes on where its errors lead nowhere."""
    stream = sys.stderr
    if stream is None:  # `2>&-`
        return
    with suppress(OSError, ValueError):  # the disk is full; the program closed it
        stream.write(text)
        stream.flush()
