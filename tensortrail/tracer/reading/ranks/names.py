"""Ranks are named in a few words, however many they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_RANK = re.compile(r"rank (\d+)")
_FEW = 2
"""So many are each named in full."""


def named(labels: Iterable[str]) -> str:
    """`rank 0, rank 1` or `ranks 0-316, 318-1023`; what is no rank is named as it is."""
    given = list(labels)
    numbers = [int(found[1]) for each in given if (found := _RANK.fullmatch(each))]
    if len(numbers) <= _FEW:
        return ", ".join(given)
    others = [each for each in given if not _RANK.fullmatch(each)]
    return ", ".join([f"ranks {_spans(sorted(set(numbers)))}", *others])


def _spans(numbers: Sequence[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{first}-{last}" if first < last else str(first) for first, last in spans)
