"""Rows are packed into the frames of a trail file, as far as its limit allows."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgpack

from tensortrail.tracer.patching.signals import let_through
from tensortrail.tracer.trail.file import TrailFile
from tensortrail.tracer.trail.layout import EVENT, FREED, FREED_KIND, LONGEST_FRAME, SHORT, Row

UNPACKABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What msgpack raises. Anything else is a signal handler's, and the program's affair."""


class Frames:
    def __init__(
        self, file: TrailFile, limit: int, dropped: Counter[int], failed: Callable[[str], None]
    ) -> None:
        self._file = file
        self._limit = limit
        self._dropped = dropped
        """How many events of each code found no room."""
        self._failed = failed
        self.codes: dict[int, int] = {}
        """What the short events of these kinds are, in the frames to come."""
        self.begin()

    def begin(self) -> None:
        """Each frame says its kinds anew: one that is damaged takes no others with it."""
        self.codes = {FREED: FREED_KIND[0]}

    def note(self, note: Mapping[str, Any]) -> None:
        """What is said of the file itself comes on top of the limit."""
        self._file.frame(_squeezed(self._packed([note])))

    def write(self, rows: list[Row]) -> None:
        packed = self._packed(rows)
        if len(packed) <= LONGEST_FRAME:
            payload = _squeezed(packed)
            if self._file.size + len(payload) <= self._limit:
                self._file.frame(payload)
            else:
                self._drop(rows)
        elif len(rows) > 1:
            self.write(rows[: len(rows) // 2])
            self.write(rows[len(rows) // 2 :])
        else:
            self._drop(rows)

    def _packed(self, rows: list[Any]) -> bytes:
        try:
            return _pack(rows)
        except UNPACKABLE as error:
            let_through(error)
            self._failed(f"an event could not be written: {error}")
            sound = [row for row in rows if _can_be_packed(row)]
            self._drop(row for row in rows if row not in sound)
            return _pack(sound)

    def _drop(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row[0] >= EVENT:
                self._dropped[row[0]] += 1
            elif row[0] == SHORT:
                self._dropped.update(self.codes[kind] for kind in row[1::4] if kind in self.codes)


def _pack(rows: Any) -> bytes:
    packed: bytes = msgpack.packb(rows, unicode_errors="replace", default=_type_name)
    return packed


def _squeezed(packed: bytes) -> bytes:
    return zlib.compress(packed, 1)


def _type_name(thing: Any) -> str:
    """The type's name, for what msgpack does not know and integers that are too large for it."""
    return type(thing).__name__


def _can_be_packed(row: Row) -> bool:
    try:
        _pack(row)
    except Exception as error:
        let_through(error)
        return False
    return True
