"""The part of a very large file that is worth a tree: the top-level statements rules look for.

The rest is made blank, so that every place stays where it is. The tree of all of it would take
gigabytes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from tensortrail.patterns import pattern

MOST_WORDS = 250_000
"""Names, numbers and strings in what is parsed, and brackets and signs one inside the other:
their tree takes up to 250 MB."""
_LARGE = 1_000_000
"""Bytes from which words are counted."""
_TEXT = rb"'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|#[^\n]*"
_WORD = pattern(_TEXT + rb"|\w+|[\[({~+-](?=\s*[\[({~+-])", re.DOTALL)
_FLAT = rb"\([^()\[\]{}'\"#\n]*\)"
_BEGINNING = rb"(?<!\\)\n(?=[^\s#)\]}])(?!(?:else|elif|except|finally)\b)"
_MARK = pattern(_TEXT + rb"|" + _FLAT + rb"|([(\[{]+)|([)\]}]+)|(" + _BEGINNING + rb")", re.DOTALL)
_OPENING, _CLOSING = 1, 2
"""Groups of `_MARK`; it has none for what is passed over: text, and brackets without any inside."""
_BLANK = bytes(each if each in b"\r\n" else 32 for each in range(256))


class Piece(NamedTuple):
    start: int
    end: int
    line: int


class Worth(NamedTuple):
    """What is left of a file. All that is gone without having to be is in `left_out`."""

    data: bytes
    left_out: str


def is_large(data: bytes) -> bool:
    return len(data) > _LARGE and _words(data, MOST_WORDS) > MOST_WORDS


def worth_parsing(data: bytes, words: Collection[bytes]) -> Worth:
    """Imports and what holds one of the words, as far as there is room."""
    pieces = list(_pieces(data))
    wanted = _holding(data, pieces, words)
    wanted |= {
        number
        for number, piece in enumerate(pieces)
        if data.startswith((b"import ", b"from "), piece.start)
    }
    return _only(data, pieces, wanted)


def with_all(data: bytes, groups: Iterable[Collection[bytes]]) -> bytes:
    """The statements that hold all the words of one of the groups, as far as there is room."""
    pieces = list(_pieces(data))
    wanted = set[int]()
    for words in groups:
        wanted |= set[int].intersection(*(_holding(data, pieces, [word]) for word in words))
    return _only(data, pieces, wanted).data


def _only(data: bytes, pieces: Sequence[Piece], wanted: Collection[int]) -> Worth:
    counts = len(data) > _LARGE
    kept: list[bytes] = []
    lines: list[int] = []
    room = MOST_WORDS
    for number, piece in enumerate(pieces):
        text = data[piece.start : piece.end]
        cost = _words(text, room) if counts and number in wanted else 0
        if cost > room:
            lines.append(piece.line)
        keeps = number in wanted and cost <= room
        room -= cost if keeps else 0
        kept.append(text if keeps else text.translate(_BLANK))
    return Worth(b"".join(kept), _told(lines))


def _holding(data: bytes, pieces: list[Piece], words: Collection[bytes]) -> set[int]:
    """The numbers of the pieces with one of the words, each word looked for from piece to piece."""
    starts = [piece.start for piece in pieces]
    found: set[int] = set()
    for word in words:
        at = data.find(word)
        while 0 <= at < len(data):
            number = bisect_right(starts, at) - 1
            found.add(number)
            at = data.find(word, pieces[number].end)
    return found


def _told(lines: list[int]) -> str:
    if not lines:
        return ""
    more = f" and at {len(lines) - 1} more lines" if lines[1:] else ""
    return f"the statement at line {lines[0]}{more}, as there are more than {MOST_WORDS:,} words"


def _pieces(data: bytes) -> Iterator[Piece]:
    """The top-level statements with what stands above them; together they are the file."""
    start = depth = 0
    line = 1
    decorated = data.startswith(b"@")
    for mark in _MARK.finditer(data):
        group = mark.lastindex
        if group is None:
            continue
        if group == _OPENING:
            depth += len(mark.group())
        elif group == _CLOSING:
            depth = max(0, depth - len(mark.group()))
        elif not depth:
            at = mark.end()
            if not decorated:
                yield Piece(start, at, line)
                line += data.count(b"\n", start, at)
                start = at
            decorated = data[at : at + 1] == b"@"
    yield Piece(start, len(data), line)


def _words(data: bytes, most: int) -> int:
    """How many there are; past the most that are allowed, nobody counts on."""
    count = 0
    for match in _WORD.finditer(data):
        count += data[match.start()] != ord("#")
        if count > most:
            break
    return count
