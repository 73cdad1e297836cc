"""Reads one trail file. It may be cut off, damaged or hostile: what can be read is kept."""

from __future__ import annotations

import math
import os
import stat
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, BinaryIO

import msgpack

from tensortrail.collector import without_collector
from tensortrail.tracer.trail.layout import (
    CONTEXT,
    EVENT,
    FRAME,
    FREED,
    FREED_KIND,
    KIND,
    KINDS,
    LONGEST_ARRAY,
    LONGEST_FRAME,
    MAGIC,
    NAME,
    READABLE,
    SHORT,
    SITE,
    SOURCE,
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
    texts: dict[int, str] = field(default_factory=lambda: {0: ""})
    sites: dict[int, Row] = field(default_factory=dict)
    contexts: dict[int, Row] = field(default_factory=dict)
    storages: dict[int, Row] = field(default_factory=dict)
    names: dict[int, list[int]] = field(default_factory=dict)
    sources: dict[int, str] = field(default_factory=dict)
    """The digests of files, by the numbers of their names."""
    kinds: dict[int, Row] = field(default_factory=lambda: {FREED: FREED_KIND})
    """What short events have in common with others."""
    rows: list[Row] = field(default_factory=list)
    """The events in order of time, each of full length."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    closed: bool = False
    outcome: str = ""
    """What ended the program, if it did not end well and the file was closed."""
    damage: str = ""

    def text(self, number: int) -> str:
        return self.texts.get(number, "?")


def read_part(path: str) -> Part:
    with without_collector():
        return _read_part(path)


def read_notes(path: str) -> Mapping[str, Any]:
    """The header with what was learned later; of a process whose rank stood in its header, and so
    of nearly all, no more than the first frame is read."""
    part = Part(path)
    with _opened(path) as file:
        for rows in _frames(file, []):
            _take(part, [row for row in rows if isinstance(row, dict)])
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
                _take(part, [row for row in rows if isinstance(row, dict)])
                break
    return part


def _starts(file: BinaryIO) -> Iterator[int]:
    size, at = os.fstat(file.fileno()).st_size, file.tell()
    while at + FRAME.size <= size:
        yield at
        file.seek(at)
        at += FRAME.size + int(FRAME.unpack(file.read(FRAME.size))[0])


def _read_part(path: str) -> Part:
    part = Part(path)
    damages: list[str] = []
    with _opened(path) as file:
        understood = [_take(part, rows) for rows in _frames(file, damages)]
    damages += ["rows of a form unknown"] * understood.count(False)
    if damages:
        more = f" and {len(damages) - 1} times more" if len(damages) > 1 else ""
        part.damage = f"{path}: {damages[0]}{more}; the other events were read"
    if any(after[1] < before[1] for before, after in zip(part.rows, part.rows[1:], strict=False)):
        # Threads overtake each other, and thinned rows are written late.
        part.rows.sort(key=itemgetter(1))
    return part


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """The file after what says that it is a trail."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise NotATrail(f"{path}: no trail")  # a pipe would make us wait
    with open(path, "rb") as file:
        if (magic := file.read(len(MAGIC))) not in READABLE:
            newer = magic.startswith(MAGIC.rpartition(b" ")[0])
            raise NotATrail(f"{path}: {'a trail of another version' if newer else 'no trail'}")
        yield file


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


def _unpacked(payload: bytes) -> Any:
    unzip = zlib.decompressobj()
    packed = unzip.decompress(payload, LONGEST_FRAME)
    if not unzip.eof or unzip.unused_data:
        raise ValueError("too long")
    return msgpack.unpackb(
        packed, use_list=False, unicode_errors="replace", max_array_len=LONGEST_ARRAY
    )


FORMS: dict[int, tuple[type, ...]] = {
    TEXT: (int, int, str),
    SITE: (int,) * 8,
    CONTEXT: (int,) * 4,
    STORAGE: (int, int, int, int, int, tuple, int),
    NAME: (int, int, int),
    SOURCE: (int, int, str),
}
WHOLE = {int}
KIND_FORM: tuple[type, ...] = (*(int,) * 6, tuple, dict)
DESCRIPTION: tuple[type, ...] = (int, int, int, tuple, int)
NO_FACTS: Mapping[str, Any] = {}
PADDING: Row = (0, 0, 0, 0, 0, 0, 0, NO_FACTS)
EVENT_FORM: tuple[type, ...] = (*(int,) * 7, dict)
LAST = EVENT + len(KINDS)


def _take(part: Part, rows: list[Any]) -> bool:
    """Whether all of them were understood."""
    events: list[Row] = []
    others: dict[int, list[Row]] = defaultdict(list)
    misfits = 0
    for row in rows:
        if type(row) is tuple and row and type(code := row[0]) is int:
            if EVENT <= code < LAST:
                events.append(row + PADDING[len(row) :] if len(row) < 8 else row)
            elif code == SHORT:
                misfits += _lengthened(part, row, events)
            elif code == KIND:
                misfits += not _take_kind(part, row)
            elif code in FORMS:
                others[code].append(row)
        elif isinstance(row, dict):
            _note(part, row)
        else:
            misfits += 1
    taken = _keep(part, events) + _keep_others(part, others)
    return not misfits and taken == len(events) + sum(map(len, others.values()))


def _keep(part: Part, events: list[Row]) -> int:
    """How many of them are sound."""
    part.rows += (kept := _of_form(events, EVENT_FORM))
    return len(kept)


def _keep_others(part: Part, others: Mapping[int, list[Row]]) -> int:
    """What the numbers in events mean; how many of these rows are sound."""
    sound = {code: _of_form(each, FORMS[code]) for code, each in others.items()}
    sound[STORAGE] = [row for row in sound.get(STORAGE, ()) if set(map(type, row[5])) <= WHOLE]
    part.texts.update((number, text) for _, number, text in sound.get(TEXT, ()))
    part.sites.update((row[1], row) for row in sound.get(SITE, ()))
    part.contexts.update((row[1], row) for row in sound.get(CONTEXT, ()))
    part.storages.update((row[1], row) for row in sound[STORAGE])
    for _, storage, name in sound.get(NAME, ()):
        part.names.setdefault(storage, []).append(name)
    part.sources.update((file, digest) for _, file, digest in sound.get(SOURCE, ()))
    return sum(map(len, sound.values()))


def _take_kind(part: Part, row: Row) -> bool:
    row = row if len(row) > 7 else (*row, NO_FACTS)
    if tuple(map(type, row)) != KIND_FORM or not EVENT <= row[2] < LAST:
        return False
    if row[6] and (
        tuple(map(type, row[6])) != DESCRIPTION or not set(map(type, row[6][3])) <= WHOLE
    ):
        return False
    part.kinds[row[1]] = row[2:]
    return True


def _lengthened(part: Part, row: Row, events: list[Row]) -> int:
    """Short events as they would be otherwise; how many of them make no sense."""
    if set(map(type, row)) != WHOLE or len(row) % 4 != 1:
        return 1
    kinds, storages, misfits = part.kinds, part.storages, 0
    for kind, time, storage, other in zip(row[1::4], row[2::4], row[3::4], row[4::4], strict=True):
        if (said := kinds.get(kind)) is None:
            misfits += 1
            continue
        code, context, site, op, description, facts = said
        events.append((code, time, context, site, storage, other, op, facts))
        if description:
            storages[storage] = (STORAGE, storage, *description)
    return misfits


def _of_form(rows: list[Row], form: tuple[type, ...]) -> list[Row]:
    """The rows whose items are of these types; by columns, since nearly always all are."""
    if {len(form)} == set(map(len, rows)) and all(
        {kind} == set(map(type, column))
        for column, kind in zip(zip(*rows, strict=True), form, strict=True)
    ):
        return rows
    return [row for row in rows if tuple(map(type, row)) == form]


def _note(part: Part, note: dict[Any, Any]) -> None:
    if "version" in note:
        part.header = _header(note)
    elif type(rank := note.get("rank")) is int:
        part.header = {**part.header, "rank": rank}
    elif isinstance(libraries := note.get("libraries"), dict):
        known = {str(name): str(version)[:LONGEST_LABEL] for name, version in libraries.items()}
        part.header = {**part.header, "libraries": known}
    if "end" in note:
        part.closed = True
        part.outcome = str(note.get("outcome") or "")[:LONGEST_LABEL]
        dropped = note.get("dropped")
        if isinstance(dropped, dict):
            part.dropped = {str(k): n for k, n in dropped.items() if type(n) is int}


LONGEST_LABEL = 200
TEXTS = ("version", "run", "cwd", "python", "torch", "thread", "worker", "host", "visible")
NUMBERS = ("pid", "rank", "local_rank", "parent", "limit", "first_storage")


def _header(note: dict[Any, Any]) -> dict[str, Any]:
    """Readers need not look at the types of what it holds."""
    header = {str(key): value for key, value in note.items()}
    for key in TEXTS:
        if key in header:
            header[key] = str(header[key])[:LONGEST_LABEL]
    for key in NUMBERS:
        if type(header.get(key, 0)) is not int:
            header[key] = None
    start = header.get("start")
    is_time = isinstance(start, (int, float)) and math.isfinite(start) and 0 <= start < 1e11
    header["start"] = start if is_time else 0.0
    argv = header.get("argv")
    header["argv"] = [str(each) for each in argv] if isinstance(argv, tuple) else []
    return header
