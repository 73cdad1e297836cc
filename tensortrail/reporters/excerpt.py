"""A line of source as a terminal shows it, and where its characters come to lie."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import accumulate

from tensortrail.inert import spelled

_TAB = 4
_CUT = "..."
_LONG = 2000
"""Characters of a line that are looked at; generated files have lines of megabytes."""
_JOINER = "\u200d"
_AS_EMOJI = "\ufe0f"


@dataclass(frozen=True)
class Excerpt:
    text: str
    offset: int
    """Terminal columns before the flagged characters."""
    length: int
    """Terminal columns they take."""


def excerpt(line: str, start: int = 0, end: int = 0, room: int = 100) -> Excerpt:
    """As much of the line as `room` holds, around its characters `start`..`end`."""
    skipped = max(start - room, 0) if len(line) > _LONG else 0
    near = line[skipped : skipped + _LONG]
    pieces, widths = _laid_out(near)
    edges = [0, *accumulate(widths)]
    start = min(max(start - skipped, 0), len(near))
    end = min(max(end - skipped, start), len(near))
    first, last = _window(edges, start, end, room)
    before = _CUT if skipped + first else ""
    after = _CUT if skipped + last < len(line) else ""
    offset = len(before) + edges[start] - edges[first]
    length = edges[min(end, last)] - edges[start]
    return Excerpt(before + "".join(pieces[first:last]) + after, offset, length)


def _window(edges: list[int], start: int, end: int, room: int) -> tuple[int, int]:
    """The characters to show: all, else the flagged ones and what fits around them."""
    count = len(edges) - 1
    if edges[-1] <= room:
        return 0, count
    room -= len(_CUT)
    first = 0
    if edges[end] > room and edges[start] > room // 2:
        room -= len(_CUT)
        before = max(room - (edges[end] - edges[start]), room // 4) // 2
        while edges[start] - edges[first] > before:
            first += 1
    last = first
    while last < count and edges[last + 1] - edges[first] <= room:
        last += 1
    flagged = min(start + 1, count) if end > start else start
    return first, max(last, flagged)


def _laid_out(line: str) -> tuple[list[str], list[int]]:
    """What is printed for each character, and how many columns it takes."""
    pieces = spelled(line, keep="\t")
    widths: list[int] = []
    column = 0
    for index, character in enumerate(line):
        if character == "\t":
            pieces[index] = " " * (_TAB - column % _TAB)
        if pieces[index] == character:
            width = _width(character, line[index - 1] if index else "", widths)
        else:
            width = len(pieces[index])
        widths.append(width)
        column += width
    return pieces, widths


def _width(character: str, before: str, widths: list[int]) -> int:
    if character.isascii():
        return 1
    if character == _AS_EMOJI:
        return 1 if widths and widths[-1] == 1 else 0
    category = unicodedata.category(character)
    joined = before == _JOINER and category == "So"
    if joined or category in ("Mn", "Me", "Cf") or _modifies(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _modifies(character: str) -> bool:
    """Skin tones, and the vowels and finals that Hangul stacks into one syllable."""
    return "\U0001f3fb" <= character <= "\U0001f3ff" or "\u1160" <= character <= "\u11ff"
