"""Reads one trail file. It may be cut off, damaged or hostile: what can be read is kept."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, BinaryIO

import msgpack

from tensortrail.collector import without_collector
from tensortrail.tracer.trail.layout import FRAME, LONGEST_ARRAY, LONGEST_FRAME, MAGIC, READABLE
from tensortrail.tracer.trail.part import Part, take


class NotATrail(Exception):
    """The file is no trail, or one of a newer version. The message says which."""


@without_collector()
def read_part(path: str) -> Part:
    part = Part(path)
    damages: list[str] = []
    with _opened(path) as file:
        understood = [take(part, rows) for rows in _frames(file, damages)]
    damages += ["rows of a form unknown"] * understood.count(False)
    if damages:
        more = f" and {len(damages) - 1} times more" if len(damages) > 1 else ""
        part.damage = f"{path}: {damages[0]}{more}; the other events were read"
    if any(after[1] < before[1] for before, after in zip(part.rows, part.rows[1:], strict=False)):
        # Threads overtake each other, and thinned rows are written late.
        part.rows.sort(key=itemgetter(1))
    return part


def read_notes(path: str) -> Mapping[str, Any]:
    """The header with what was learned later; of a process whose rank stood in its header, and so
    of nearly all, no more than the first frame is read."""
    part = Part(path)
    with _opened(path) as file:
        for rows in _frames(file, []):
            take(part, [row for row in rows if isinstance(row, dict)])
            if part.header.get("rank") is not None:
                break
    return part.header


def read_ends(path: str) -> Part:
    """What the first frame and the last one say of the file: no rows are read."""
    part = Part(path)
    with _opened(path) as file:
        starts = list(_starts(file))
        for at in dict.fromkeys((*starts[:1], *starts[-1:])):
            file.seek(at)
            for rows in _frames(file, []):
                take(part, [row for row in rows if isinstance(row, dict)])
                break
    return part


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """The file after what says that it is a trail."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise NotATrail(f"{path}: not a trail")  # a pipe would make us wait
    with open(path, "rb") as file:
        if (magic := file.read(len(MAGIC))) not in READABLE:
            raise NotATrail(f"{path}: {_why_not(magic)}")
        yield file


def _why_not(magic: bytes) -> str:
    if magic.startswith(MAGIC.rpartition(b" ")[0]):
        return "a trail of another version"
    if MAGIC.startswith(magic):  # the disk was full, or the process was killed at its start
        return "it ends before its first event"
    return "not a trail"


def _frames(file: BinaryIO, damages: list[str]) -> Iterator[list[Any]]:
    left = os.fstat(file.fileno()).st_size - file.tell()
    while head := file.read(FRAME.size):
        at = file.tell() - len(head)
        left -= len(head)
        length, check = FRAME.unpack(head) if len(head) == FRAME.size else (left + 1, 0)
        if length > left or length > LONGEST_FRAME:
            damages.append(f"cut off or damaged at byte {at}")
            return
        payload = file.read(length)
        left -= length
        if zlib.crc32(payload) != check:
            damages.append(f"damaged at byte {at}")
            continue
        try:
            rows = _unpacked(payload)
        except (ValueError, TypeError, zlib.error, msgpack.UnpackException) as error:
            damages.append(f"unreadable at byte {at}: {error or type(error).__name__}")
            continue
        yield list(rows) if isinstance(rows, tuple) else [rows]


def _starts(file: BinaryIO) -> Iterator[int]:
    size, at = os.fstat(file.fileno()).st_size, file.tell()
    while at + FRAME.size <= size:
        yield at
        file.seek(at)
        at += FRAME.size + int(FRAME.unpack(file.read(FRAME.size))[0])


def _unpacked(payload: bytes) -> Any:
    unzip = zlib.decompressobj()
    packed = unzip.decompress(payload, LONGEST_FRAME)
    if not unzip.eof or unzip.unused_data:
        raise ValueError("too long")
    return msgpack.unpackb(
        packed, use_list=False, unicode_errors="replace", max_array_len=LONGEST_ARRAY
    )
