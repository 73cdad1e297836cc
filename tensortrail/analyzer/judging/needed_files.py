"""The files that findings in other files depend on: thousands of files need the same few."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

Stamp = list[int]
"""Size, and the nanoseconds at which content and file were last changed. The last one cannot be
set: no archive brings files to which the entries of its own cache apply."""
STAMPED = 3
"""The numbers of a stamp: all that an entry says of a file without findings that needs no other."""
_Row = tuple[str, int, int, int]


class NeededFiles:
    """Each file is stored once, with its stamp; entries of the cache name it by its number."""

    def __init__(self, rows: Sequence[Any], stamp: Callable[[str], Stamp | None]) -> None:
        """Raises ValueError or TypeError where the rows are none."""
        self._stamp = stamp
        self._rows: list[_Row] = [_row(*each) for each in rows]

    def unchanged(self, numbers: Sequence[int]) -> bool:
        return self._changed.isdisjoint(numbers)

    def paths(self, numbers: Sequence[int]) -> tuple[str, ...]:
        return tuple(self._rows[number][0] for number in numbers)

    def numbers(self, stamps: Mapping[str, Stamp | None]) -> list[int]:
        return [self._number((path, *stamp)) for path, stamp in stamps.items() if stamp]

    def packed(self, entries: Mapping[str, Any]) -> tuple[list[_Row], dict[str, Any]]:
        """The rows that entries name in their last place, and those entries with their new
        numbers; an entry that is none is left out."""
        used: dict[int, int] = {}
        kept = {}
        for key, entry in entries.items():
            if isinstance(entry, list) and len(entry) == STAMPED:
                kept[key] = entry
                continue
            with suppress(AttributeError, IndexError, TypeError, ValueError):
                *others, numbers = entry
                self.paths(numbers)
                kept[key] = [*others, [used.setdefault(each, len(used)) for each in numbers]]
        return [self._rows[number] for number in used], kept

    def _number(self, row: Any) -> int:
        if row not in self._numbers:
            self._numbers[row] = len(self._rows)
            self._rows.append(row)
        return self._numbers[row]

    @cached_property
    def _changed(self) -> set[int]:
        return {
            number for number, (path, *stamp) in enumerate(self._rows) if self._stamp(path) != stamp
        }

    @cached_property
    def _numbers(self) -> dict[_Row, int]:
        return {row: number for number, row in enumerate(self._rows)}


def _row(path: str, size: int, content: int, file: int) -> _Row:
    if not isinstance(path, str):
        raise TypeError("a row begins with the path")
    return (path, size, content, file)
