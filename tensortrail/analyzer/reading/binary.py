"""Files named like source that hold zero bytes: in UTF-16, or no text at all."""

from __future__ import annotations

import codecs

from tensortrail.analyzer.reading.unreadable import Unreadable

_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16",
}  # fmt: skip
"""What such a text begins with; the longer marks first, as they begin like shorter ones."""
NO_TEXT = "the file contains null bytes, so it is not Python source, and nothing in it was checked"


def without_zeros(data: bytes) -> bytes:
    """The data, of UTF-16 without the zeros of English letters, so that words can be found."""
    return data.replace(b"\0", b"")


def why_no_source(data: bytes) -> Unreadable:
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            why = f"written in {encoding}, which Python does not read: save the file as UTF-8"
            return Unreadable(why)
    return Unreadable(NO_TEXT)
