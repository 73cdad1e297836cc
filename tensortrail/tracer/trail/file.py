"""The file under a trail is appended to in frames, and is never anybody else's."""

from __future__ import annotations

import contextlib
import os
import zlib

from tensortrail.tracer.patching.signals import let_through
from tensortrail.tracer.trail.layout import FRAME


class TrailFile:
    """Does not raise once it is open: `trouble` says why nothing is written any more."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self.trouble = ""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._identity = _identity(self._file)

    @property
    def is_open(self) -> bool:
        return self._file >= 0

    def frame(self, payload: bytes) -> None:
        self.append(FRAME.pack(len(payload), zlib.crc32(payload)) + payload)

    def append(self, data: bytes) -> None:
        if not self.is_open or self.trouble:
            return
        try:
            if _identity(self._file) != self._identity:
                self._open_again()
            self._write(data)
        except OSError as error:
            let_through(error)
            self.trouble = f"{self.path}: {error.strerror or error}"
            # A frame half written would only be reported as damage.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.size)

    def close(self) -> None:
        if self.is_open and _identity(self._file) == self._identity:
            os.close(self._file)
        self._file = -1

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._file, left) :]
        self.size += len(data)

    def _open_again(self) -> None:
        """The program closed all files it knew nothing of; the number may be one of its own."""
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        if _identity(self._file) != self._identity:
            os.close(self._file)
            self._file = -1
            raise OSError("the file was replaced")


def _identity(file: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino
