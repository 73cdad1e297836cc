"""The directory of a zip archive: which records it has, and where their bytes are."""

from __future__ import annotations

import struct
from typing import NamedTuple

from tensortrail.doctor.checkpoint.formats.ranges import MOST_READ, Ranges, TooMuch

_END = struct.Struct("<4s4H2LH")
_END64_PLACE = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_LONGEST_COMMENT = 65_535
_BEFORE_LENGTH = 12
"""Bytes of an end record before those that its length counts."""
_ONE_PART = ((0, 0), (1, 1))
_FIRST_PARTS = (0, 1)
_IN_64, _COUNT_IN_64 = 0xFFFFFFFF, 0xFFFF
_METHODS = (0, 8)
_NOT_READ = 0x2061
"""Flags: encrypted, in one of two ways or in the directory, or a patch."""
MOST_RECORDS = 500_000


class Record(NamedTuple):
    name: str
    header: int
    """Where its local header is."""
    size: int
    stored: int
    """Bytes in the archive; `size` unless they are compressed."""
    compressed: bool


class Directory(NamedTuple):
    records: dict[str, Record]
    begin: int
    end: int
    """Of everything that belongs to the archive."""
    twice: tuple[str, ...]


class NoDirectory(Exception):
    """The file has no directory at its end."""


class BadDirectory(Exception):
    def __init__(self, message: str, byte: int) -> None:
        super().__init__(message)
        self.byte = byte


def read_directory(file: Ranges) -> Directory:
    end, count, size, begin = _place(file)
    if size > MOST_READ or count > MOST_RECORDS:
        raise TooMuch(f"a zip directory of {count:,} records in {size:,} bytes")
    if begin + size > end:
        told = f"the zip directory should lie at bytes {begin:,} to {begin + size:,}"
        raise BadDirectory(f"{told}, but its end record is at {end:,}", end)
    data = file.read(begin, size)
    records: dict[str, Record] = {}
    twice: list[str] = []
    at = 0
    for _ in range(count):
        record, at = _entry(data, at, begin)
        if record.name in records:
            twice.append(record.name)
        records[record.name] = record
    tail = _END.unpack(file.read(_end_of(file), _END.size))
    return Directory(records, begin, _end_of(file) + _END.size + tail[7], tuple(twice))


def data_of(file: Ranges, record: Record) -> int:
    """Where the bytes of a record begin."""
    raw = file.read(record.header, _LOCAL.size)
    if len(raw) < _LOCAL.size or not raw.startswith(b"PK\x03\x04"):
        raise BadDirectory(f"the header of record {record.name!r} is not there", record.header)
    *_, name, extra = _LOCAL.unpack(raw)
    return int(record.header + _LOCAL.size + name + extra)


def _place(file: Ranges) -> tuple[int, int, int, int]:
    """Where the end record is, and the count, size and place of the directory it gives."""
    at = _end_of(file)
    _, disk, first, here, count, size, begin, _ = _END.unpack(file.read(at, _END.size))
    if (disk, first) not in _ONE_PART or here != count:
        raise BadDirectory("the zip archive is said to have several parts", at)
    raw = file.read(at - _END64_PLACE.size, _END64_PLACE.size) if at >= _END64_PLACE.size else b""
    if len(raw) == _END64_PLACE.size and raw.startswith(b"PK\x06\x07"):
        _, _, place, parts = _END64_PLACE.unpack(raw)
        wide = file.read(place, _END64.size) if place <= file.size else b""
        if len(wide) < _END64.size:
            raise BadDirectory("the 64-bit end record of the zip archive is not there", at)
        if wide.startswith(b"PK\x06\x06"):
            return _wide(place, parts, wide)
    if _IN_64 in (size, begin) or count == _COUNT_IN_64:
        raise BadDirectory("the 64-bit end record of the zip archive is not there", at)
    return at, count, size, begin


def _wide(place: int, parts: int, raw: bytes) -> tuple[int, int, int, int]:
    """The same from the 64-bit end record."""
    _, length, _, _, disk, first, here, count, size, begin = _END64.unpack(raw)
    if parts != 1 or (disk, first) not in _ONE_PART or here != count:
        raise BadDirectory("the zip archive is said to have several parts", place)
    if length < _END64.size - _BEFORE_LENGTH or size < count * _ENTRY.size:
        raise BadDirectory("the 64-bit end record of the zip archive is damaged", place)
    return place, count, size, begin


def _end_of(file: Ranges) -> int:
    last = max(file.size - _END.size, 0)
    if file.read(last, 4) == b"PK\x05\x06":
        return last
    begin = max(file.size - _END.size - _LONGEST_COMMENT, 0)
    tail = file.read(begin, file.size - begin)
    found = tail.rfind(b"PK\x05\x06", 0, len(tail) - _END.size + 4)
    if found < 0:
        raise NoDirectory
    return begin + found


def _entry(data: bytes, at: int, begin: int) -> tuple[Record, int]:
    if len(data) - at < _ENTRY.size or data[at : at + 4] != b"PK\x01\x02":
        raise BadDirectory("the zip directory is damaged", begin + at)
    fields = _ENTRY.unpack_from(data, at)
    method, stored, size = fields[4], fields[8], fields[9]
    name_length, extra_length, comment_length, header = *fields[10:13], fields[16]
    at += _ENTRY.size
    if at + name_length + extra_length + comment_length > len(data):
        raise BadDirectory("the zip directory is damaged", begin + at)
    raw = data[at : at + name_length]
    name = raw.decode("utf-8", "backslashreplace")
    if name.encode() != raw:
        raise BadDirectory(f"the name of record {name!r} is not text", begin + at)
    extra = data[at + name_length : at + name_length + extra_length]
    size, stored, header = _in_64(extra, size, stored, header)
    if fields[13] not in _FIRST_PARTS:
        raise BadDirectory(f"record {name!r} is said to lie in another file", begin + at)
    if method not in _METHODS or fields[3] & _NOT_READ or (not method and size != stored):
        raise BadDirectory(f"record {name!r} is packed in no way that torch reads", begin + at)
    record = Record(name, header, size, stored, bool(method))
    return record, at + name_length + extra_length + comment_length


def _in_64(extra: bytes, *values: int) -> tuple[int, ...]:
    """The values, with those that did not fit in 32 bits from the extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            wide = extra[at + 4 : at + 4 + length]
            numbers = iter(struct.unpack(f"<{len(wide) // 8}Q", wide[: len(wide) // 8 * 8]))
            return tuple(next(numbers, each) if each == _IN_64 else each for each in values)
        at += 4 + length
    return values
