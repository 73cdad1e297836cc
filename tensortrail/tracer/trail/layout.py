"""The layout of a trail file, version 2. Version 1 has no KIND and SHORT.

A file is MAGIC and then frames: length and CRC-32 of the payload (`FRAME`), then the payload,
zlib around a msgpack array of rows. A row is an array whose first item says what it is:

    TEXT     number, text                                                 0 is ""
    SITE     number, file, line, function, by file, by line, by function  0 is none
    CONTEXT  number, thread, phase                                        0 is unknown
    STORAGE  number, device, bytes, dtype, shape, type                    0 is none
    NAME     storage, name
    SOURCE   file, SHA-256 of the file that ran
    KIND     number, event's row code, context, site, op, description, facts   0 is freed memory
    SHORT    kind, microseconds, storage, other, and so on for more events
    EVENT+n  microseconds, context, site, storage, other, op, facts       n: place in Did

Strings in rows are numbers of texts, but for the digest. Rows come in any order. An event's row may
end early: what is missing is 0, and `facts` an empty map. What an event has in common with many
others may be said once, as a kind: the rest of it stands in a SHORT row then. The description of a
kind is empty, or it says what the row of a storage says after its number: the storage of each event
of that kind is a new one. Its facts are those of each event; without any the row may end before
them. Maps between the rows are notes on the file itself: the first frame holds the header, the last
one says that the file was closed and what was dropped.
"""

from __future__ import annotations

import struct
from typing import Any

from tensortrail.rules.timeline import Did

MAGIC = b"TENSORTRAIL 2\n"
READABLE = (b"TENSORTRAIL 1\n", MAGIC)
FRAME = struct.Struct("<II")
LONGEST_FRAME = 1 << 24
"""Bytes of a payload, before and after it is unpacked."""
LONGEST_ARRAY = 1 << 14
"""No array in a frame has more items: a reader need not believe more."""

TEXT, SITE, CONTEXT, STORAGE, NAME, SOURCE, KIND, SHORT = range(8)
EVENT = 16
KINDS: tuple[Did, ...] = tuple(Did)
CODE: dict[Did, int] = {did: EVENT + place for place, did in enumerate(KINDS)}

Row = tuple[Any, ...]
FREED = 0
"""The kind of an event without any more to say."""
FREED_KIND: Row = (CODE[Did.FREE], 0, 0, 0, (), {})
"""What its row would say after its number."""
SUFFIX = ".trail"
