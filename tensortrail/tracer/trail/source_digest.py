"""The digest of a source file, taken while the program that was read from it runs."""

from __future__ import annotations

import os
import stat
from hashlib import sha256

LARGEST = 16_000_000
"""Bytes of a source that is read: names of files come from programs and trails, which may be
anybody's."""


def source_digest(path: str, not_after: float) -> str:
    """SHA-256 of the file; "" where it was written after that time, or is no file of a program."""
    try:
        data = bytes_of(path, not_after)
    except (OSError, ValueError):
        return ""
    return sha256(data).hexdigest()


def bytes_of(path: str, not_after: float = float("inf")) -> bytes:
    """Of a regular file of modest size that is no younger."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe would wait
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a file")
        if status.st_size > LARGEST:
            raise ValueError("it is too large")
        if status.st_mtime > not_after:
            raise ValueError("it changed since the run")
        return b"".join(iter(lambda: os.read(descriptor, 1 << 20), b""))
    finally:
        os.close(descriptor)
