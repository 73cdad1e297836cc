"""What a GPU has and a rehearsal has not, and whether the program asked for it."""

from __future__ import annotations

from typing import NamedTuple
from unittest import SkipTest


class Lack(NamedTuple):
    what: str
    is_certain: bool
    """What was asked for cannot be had. Otherwise something stands in for it, which may do."""


met: list[Lack] = []
"""What was asked for since somebody looked last."""


def note(what: str, certain: bool = False) -> None:
    lack = Lack(what, certain)
    if lack not in met:
        met.append(lack)


def taken() -> list[Lack]:
    found = met.copy()
    met.clear()
    return found


class Lacking(SkipTest):
    """Raised where a rehearsal cannot do what a GPU does: runners of tests skip the test."""

    def __init__(self, what: str = "") -> None:
        super().__init__(what)
        note(what, certain=True)


class NotRehearsed(Lacking, NotImplementedError):
    """It is not simulated."""


class NotShared(Lacking, BufferError):
    """The memory of a simulated device is asked for by another library."""


class HostTooSmall(Lacking, MemoryError):
    """This machine has less memory than the simulated device."""
