"""The layout of a trail file, version 1.

A file is MAGIC and then frames: length and CRC-32 of the payload (`FRAME`), then the payload,
a msgpack array of rows. A row is an array whose first item says what it is:

    TEXT     text                                         texts count from 0, in order
    SITE     file, line, function, by file, by line, by function          count from 1
    CONTEXT  thread, phase                                                count from 0
    STORAGE  number, device, bytes, dtype, shape, type
    NAME     storage, name
    EVENT+n  microseconds, context, site, storage, other, op, facts      n: place in Did

Strings in rows are numbers of texts. An event's row may end early: what is missing is 0, and
`facts` an empty map. Maps between the rows are notes on the file itself: the first frame holds
the header, the last one says that the file was closed and what was dropped.
"""

from __future__ import annotations

import struct
from typing import Any

from tensortrail.rules.timeline import Did

MAGIC = b"TENSORTRAIL 1\n"
FRAME = struct.Struct("<II")
LONGEST_FRAME = 1 << 28

TEXT, SITE, CONTEXT, STORAGE, NAME = range(5)
EVENT = 16
KINDS: tuple[Did, ...] = tuple(Did)
CODE: dict[Did, int] = {did: EVENT + place for place, did in enumerate(KINDS)}

Row = tuple[Any, ...]
SUFFIX = ".trail"
