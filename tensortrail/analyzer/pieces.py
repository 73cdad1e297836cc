"""The part of a very large file that is worth a tree: the top-level statements rules look for.

The rest is made blank, so that every place stays where it is. The tree of all of it would take
gigabytes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from typing import NamedTuple

MOST_WORDS = 300_000
"""Names, numbers and strings in what is parsed, and brackets and signs one inside the other:
their tree takes up to 300 MB."""
_LARGE = 1_000_000
"""Bytes from which words are counted."""
_TEXT = rb"'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|#[^\n]*"
_WORD = re.compile(_TEXT + rb"|\w+|[\[({~+-](?=\s*[\[({~+-])", re.DOTALL)
_MARK = re.compile(_TEXT + rb"|[()\[\]{}\\\n]", re.DOTALL)
_GOES_ON = re.compile(rb"[\s#)\]}]|(else|elif|except|finally)\b")
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
    return len(data) > _LARGE and _words(data, 0, len(data)) > MOST_WORDS


def worth_parsing(data: bytes, words: Collection[bytes]) -> Worth:
    """Imports and what holds one of the words, as far as there is room."""
    kept: list[bytes] = []
    lines: list[int] = []
    room = MOST_WORDS
    pieces = list(_pieces(data))
    holding = _holding(data, pieces, words)
    for number, piece in enumerate(pieces):
        text = data[piece.start : piece.end]
        wanted = number in holding or text.startswith((b"import ", b"from "))
        cost = _words(data, piece.start, piece.end) if wanted else 0
        if cost > room:
            lines.append(piece.line)
        keeps = wanted and cost <= room
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
    start = line = first_line = 0
    depth = 0
    decorated = data.startswith(b"@")
    for mark in _MARK.finditer(data):
        token = mark.group()
        line += token.count(b"\n")
        if token in b"([{":
            depth += 1
        elif token in b")]}":
            depth = max(0, depth - 1)
        elif token == b"\n" and not depth and data[mark.start() - 1 : mark.start()] != b"\\":
            at = mark.end()
            if at == len(data) or _GOES_ON.match(data, at):
                continue
            if not decorated:
                yield Piece(start, at, first_line + 1)
                start, first_line = at, line
            decorated = data[at : at + 1] == b"@"
    yield Piece(start, len(data), first_line + 1)


def _words(data: bytes, start: int, end: int) -> int:
    """How many there are; past the most that are allowed, nobody counts on."""
    count = 0
    for match in _WORD.finditer(data, start, end):
        count += data[match.start()] != ord("#")
        if count > MOST_WORDS:
            break
    return count
