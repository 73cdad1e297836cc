"""A small record beside the trail says where a process stands; it is written over and over.

A rank that hangs makes no more events, and what led there may wait to be written. This record is
with the kernel at once, so it is there also after a kill."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

import msgpack

from tensortrail.tracer.patching.signals import let_through
from tensortrail.tracer.trail.layout import SUFFIX

ENDING = ".standing"
LONGEST = 4096
GIVEN = " of "
"""Between a collective and what it was given."""


@dataclass(frozen=True, slots=True)
class Stand:
    count: int
    """Of collectives that the process has begun."""
    time: float
    """When it began the last, in seconds since the epoch."""
    op: str
    file: str
    line: int
    inside: bool
    """It has not come back from it."""


def beside(trail: str) -> str:
    return trail.removesuffix(SUFFIX) + ENDING


class Standing:
    """Does not raise: what cannot be written is left out."""

    def __init__(self, trail: str) -> None:
        self._path = beside(trail)
        self._file = -1
        self._inode = (0, 0)
        self._count = 0

    def began(self, op: str, file: str, line: int) -> tuple[int, float, str, str, int]:
        self._count += 1
        said = (self._count, time.time(), op, file, line)
        self._write((*said, True))
        return said

    def ended(self, said: tuple[int, float, str, str, int]) -> None:
        if said[0] == self._count:
            self._write((*said, False))

    def forget(self, trail: str) -> None:
        """A forked child leaves the record to its parent."""
        with contextlib.suppress(OSError):
            if self._file >= 0 and self._is_ours():
                os.close(self._file)
        self._path, self._file, self._count = beside(trail), -1, 0

    def close(self) -> None:
        """The process ends well: nothing is left to tell."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                if self._is_ours():
                    os.close(self._file)
                os.unlink(self._path)
            self._file = -1

    def _write(self, said: tuple[object, ...]) -> None:
        try:
            if self._file < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o644)
                self._inode = self._identity()
            if self._is_ours():
                os.pwrite(self._file, msgpack.packb(said, unicode_errors="replace"), 0)
        except (OSError, ValueError) as error:
            let_through(error)

    def _is_ours(self) -> bool:
        """The program may have closed all files, and opened its own."""
        return self._identity() == self._inode

    def _identity(self) -> tuple[int, int]:
        status = os.fstat(self._file)
        return status.st_dev, status.st_ino


def stand_of(trail: str) -> Stand | None:
    """What the process last said; None if it said nothing, or ended well."""
    try:
        with open(beside(trail), "rb") as file:
            unpacker = msgpack.Unpacker()
            unpacker.feed(file.read(LONGEST))
            match unpacker.unpack():
                case [int(count), float(at), str(op), str(place), int(line), bool(inside)]:
                    return Stand(count, at, op, place, line, inside)
    except (OSError, ValueError, msgpack.UnpackException):
        return None
    return None
