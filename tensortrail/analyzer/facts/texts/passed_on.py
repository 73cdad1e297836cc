"""Which arguments about devices the calls of a text are given, by the names of what is called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

_PASSED_ON = {
    word: re.compile(rb"%s\w*\s*=(?!=)" % word)
    for word in (b"device", b"dtype", b"generator", b"map_location", b"offload")
}
"""Words of the keywords that are counted by the names of what they are passed to."""
_LONGEST = 4_000
"""Bytes of one call."""
_OF_NAMES = bytes(each for each in range(128) if chr(each).isalnum() or each == ord("_"))


@cache
def words_in(keyword: str) -> Sequence[bytes]:
    """The words for which the keyword is counted, once for each."""
    return [word for word in _PASSED_ON if word in keyword.encode()]


def passed_in(text: bytes, *words: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names of what is called in a text, with the keywords that are passed on to it: those that
    are counted for one of the words, or for any."""
    patterns = [_PASSED_ON[word] for word in words or _PASSED_ON if word in text]
    for match in (each for pattern in patterns for each in pattern.finditer(text)):
        name = _around(text, match.start())
        if name:
            yield name, name_before(text, match.start(), 60) + match.group().rstrip(b"= \t\n")


def _around(text: bytes, at: int) -> bytes:
    """The name before the parenthesis that is open there."""
    first, depth = max(0, at - _LONGEST), 0
    opening, closing = text.rfind(b"(", first, at), text.rfind(b")", first, at)
    while opening >= 0:
        if closing > opening:
            depth += 1
            closing = text.rfind(b")", first, closing)
        elif depth:
            depth -= 1
            opening = text.rfind(b"(", first, opening)
        else:
            return name_before(text, opening, 100)
    return b""


def name_before(text: bytes, at: int, most: int) -> bytes:
    """The name that ends there, if it is no longer; what is stripped is quicker than a search."""
    before = text[max(0, at - most) : at]
    return before[len(before.rstrip(_OF_NAMES)) :]
