"""Reads named ranges of a file: never a device or a pipe, never more than was asked for."""

from __future__ import annotations

import errno
import os
import stat
from copy import copy
from types import TracebackType

MOST_READ = 64 << 20
"""Bytes of a header, directory or index that are read; tensors are none of them."""


class TooMuch(Exception):
    """Reading it would take more memory than any real checkpoint needs."""


class Ranges:
    """An open file. Its size is that of the moment it was opened."""

    def __init__(self, path: str) -> None:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        self._handle = os.open(path, flags)
        try:
            status = os.fstat(self._handle)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
        except OSError:
            os.close(self._handle)
            raise
        self.size = status.st_size
        self._first = 0

    def part(self, begin: int, end: int) -> Ranges:
        """These bytes alone, as a file that ends with this one."""
        found = copy(self)
        found._first += begin
        found.size = end - begin
        return found

    def __enter__(self) -> Ranges:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._handle)

    def read(self, begin: int, length: int) -> bytes:
        """The bytes from `begin`, fewer where the file ends before."""
        if length > MOST_READ:
            raise TooMuch(f"{length:,} bytes would have to be read, more than {MOST_READ:,}")
        length = min(length, self.size - begin)
        begin += self._first
        pieces: list[bytes] = []
        while length > 0 and (piece := os.pread(self._handle, length, begin)):
            pieces.append(piece)
            begin, length = begin + len(piece), length - len(piece)
        return b"".join(pieces)
