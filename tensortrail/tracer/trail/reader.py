"""Reads one trail file. It may be cut off, damaged or hostile: what can be read is kept."""

from __future__ import annotations

import gc
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgpack

from tensortrail.tracer.trail.layout import (
    CONTEXT,
    EVENT,
    FRAME,
    KINDS,
    LONGEST_FRAME,
    MAGIC,
    NAME,
    SITE,
    STORAGE,
    TEXT,
    Row,
)


class NotATrail(Exception):
    """The file is no trail, or one of a newer version. The message says which."""


@dataclass
class Part:
    """The trail of one process."""

    path: str
    header: Mapping[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    sites: list[Row] = field(default_factory=lambda: [(SITE, 0, 0, 0, 0, 0, 0)])
    contexts: list[Row] = field(default_factory=list)
    storages: dict[int, Row] = field(default_factory=dict)
    names: dict[int, list[int]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    """The events, each of full length."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    closed: bool = False
    damage: str = ""

    def text(self, number: int) -> str:
        return self.texts[number] if 0 <= number < len(self.texts) else "?"


def read_part(path: str) -> Part:
    with without_collector():
        return _read_part(path)


@contextmanager
def without_collector() -> Iterator[None]:
    """Millions of rows are made and none is garbage: looking for some takes half of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_part(path: str) -> Part:
    part = Part(path)
    with open(path, "rb") as file:
        if (magic := file.read(len(MAGIC))) != MAGIC:
            newer = magic.startswith(MAGIC.rpartition(b" ")[0])
            raise NotATrail(f"{path}: {'a trail of another version' if newer else 'no trail'}")
        try:
            for rows in _frames(file):
                _take(part, rows)
        except Damage as damage:
            part.damage = f"{path}: {damage}; the events before it were read"
    part.header = part.header or {}
    return part


class Damage(Exception):
    pass


def _frames(file: Any) -> Iterator[list[Any]]:
    while head := file.read(FRAME.size):
        at = file.tell() - len(head)
        if len(head) < FRAME.size:
            raise Damage(f"cut off at byte {at}")
        length, check = FRAME.unpack(head)
        payload = file.read(length) if length <= LONGEST_FRAME else b""
        if len(payload) < length:
            raise Damage(f"cut off or damaged at byte {at}")
        if zlib.crc32(payload) != check:
            raise Damage(f"damaged at byte {at}")
        try:
            rows = msgpack.unpackb(payload, use_list=False, strict_map_key=False)
        except (ValueError, msgpack.UnpackException) as error:
            raise Damage(f"unreadable at byte {at}: {error}") from error
        if not isinstance(rows, tuple):
            raise Damage(f"unreadable at byte {at}")
        yield list(rows)


PADDING: Row = (0, 0, 0, 0, 0, 0, 0, {})
LAST = EVENT + len(KINDS)


def _take(part: Part, rows: list[Any]) -> None:
    append = part.rows.append
    for row in rows:
        try:
            code = row[0]
            if EVENT <= code < LAST:
                append(row + PADDING[len(row) :] if len(row) < 8 else row)
            elif code == TEXT:
                part.texts.append(str(row[1]))
            elif code == SITE:
                part.sites.append(_numbers(row, 7))
            elif code == CONTEXT:
                part.contexts.append(_numbers(row, 3))
            elif code == STORAGE:
                _, number, _, _, _, _, _ = row
                part.storages[number] = row
            elif code == NAME:
                part.names.setdefault(row[1], []).append(row[2])
        except KeyError:
            _note(part, row)
        except (TypeError, IndexError, ValueError, AttributeError) as error:
            raise Damage("a row of a form unknown") from error


def _numbers(row: Row, length: int) -> Row:
    if len(row) != length or not all(isinstance(each, int) for each in row):
        raise ValueError(row)
    return row


def _note(part: Part, note: Any) -> None:
    if not isinstance(note, dict):
        raise Damage("a row of a form unknown")
    if "version" in note:
        part.header = note
    if "end" in note:
        part.closed = True
        part.dropped = note.get("dropped") or {}
