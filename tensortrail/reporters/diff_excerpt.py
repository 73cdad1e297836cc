"""The lines of a fix's diff as a terminal shows them: long ones around what changes in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile

from tensortrail.reporters.excerpt import excerpt

_SIGNS = (" ", "+", "-")
_BEYOND = 8
"""Characters behind a change that are shown: what is only removed has none in the other line."""


def diff_lines(preview: str, room: int) -> Iterator[str]:
    removed: list[str] = []
    for sign, group in groupby(preview.split("\n"), key=lambda line: line[:1]):
        lines = [line.rstrip() for line in group]
        if sign == "-":
            removed = lines
            continue
        yield from _both(removed, lines if sign == "+" else [], room)
        if sign != "+":
            yield from (_cut(line, 0, 0, room) for line in lines)
        removed = []
    yield from _both(removed, [], room)


def _both(removed: Sequence[str], added: Sequence[str], room: int) -> Iterator[str]:
    """Each pair of lines is cut at the same place, so that they can be compared."""
    spans = [_change(old, new) for old, new in zip(removed, added, strict=False)]
    for lines in (removed, added):
        for number, line in enumerate(lines):
            start, after = spans[number] if number < len(spans) else (0, 0)
            yield _cut(line, start, max(len(line) - after, start), room)


def _change(old: str, new: str) -> tuple[int, int]:
    """How many characters the two begin with in common, and how many they end with."""
    start = _alike(old[1:], new[1:]) + 1
    return start, _alike(old[start:][::-1], new[start:][::-1])


def _alike(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _cut(line: str, start: int, end: int, room: int) -> str:
    """The sign of the line stays."""
    sign = line[:1] if line[:1] in _SIGNS else ""
    at = len(sign)
    end = min(end + _BEYOND, len(line)) if start else 0
    return sign + excerpt(line[at:], max(start - at, 0), max(end - at, 0), room - at).text
