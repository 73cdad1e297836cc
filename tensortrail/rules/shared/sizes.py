"""Sizes in words: bytes of files and traffic in thousands, those of memory as torch's errors tell
them, and the dimensions of a tensor."""

from __future__ import annotations

from collections.abc import Iterable

MB = 1_000_000


def size(nbytes: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"


def memory(nbytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "bytes" else f"{nbytes:.2f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.2f} GiB"


def dimensions(shape: Iterable[int]) -> str:
    """`2x3`"""
    return "x".join(map(str, shape)) or "scalar"
