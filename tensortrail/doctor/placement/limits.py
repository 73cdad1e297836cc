"""What each device may hold, as it is asked for: `--gpu 24GiB x2 --cpu 64GiB --disk`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?i?B?)", re.IGNORECASE)
_TIMES = re.compile(r"[x*](\d{1,4})", re.IGNORECASE)
_BOTH = re.compile(r"(\d{1,4})[x*](\d.*)|(.+?)[x*](\d{1,4})", re.IGNORECASE)
_UNITS = {"": 1, "k": 1, "m": 2, "g": 3, "t": 4}


class BadLimit(Exception):
    """It is no size: what was written."""


class Limits(NamedTuple):
    gpus: tuple[int, ...]
    """Bytes of each."""
    cpu: int | None
    disk: bool

    def as_max_memory(self, more: int = 0) -> dict[int | str, int]:
        """As accelerate takes it, with so many more bytes on every GPU."""
        found: dict[int | str, int] = {n: each + more for n, each in enumerate(self.gpus)}
        return found if self.cpu is None else {**found, "cpu": self.cpu}


def limits_of(gpus: Sequence[Sequence[str]], cpu: str, disk: bool) -> Limits:
    found = [each for words in gpus for each in _gpus(words)]
    return Limits(tuple(found), size_of(cpu) if cpu else None, disk)


def _gpus(words: Sequence[str]) -> list[int]:
    """`24GiB`, `24GiB x2`, `24GiBx2`, `2x24GiB`, `24GiB 40GiB` and `24GiB,40GiB`."""
    found: list[int] = []
    for word in (part for each in words for part in each.split(",") if part):
        if (times := _TIMES.fullmatch(word)) and found:
            found += [found[-1]] * (int(times[1]) - 1)
        elif both := _BOTH.fullmatch(word):
            found += [size_of(both[2] or both[3])] * int(both[1] or both[4])
        else:
            found.append(size_of(word))
    return found


def size_of(text: str) -> int:
    """Bytes: GiB counts by 1024 and GB by 1000, as for accelerate."""
    found = _SIZE.fullmatch(text.strip())
    if not found or (found[2] and found[2].lower() == "i"):
        raise BadLimit(f"{text!r} is not a size: write 24GiB, 24GB or a number of bytes")
    unit = found[2].lower()
    if unit in ("b", ""):
        return int(float(found[1]))
    base = 1024 if "i" in unit else 1000
    return int(float(found[1]) * base ** _UNITS[unit[0]])
