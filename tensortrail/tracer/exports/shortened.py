"""A list that may be long is shown by its first lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensortrail.plurals import counted


def first_of(lines: Sequence[str], most: int, what: str = "") -> Iterator[str]:
    """The first lines, indented, and how many more there are (of `what`)."""
    yield from (f"  {line}" for line in lines[:most])
    if (left := len(lines) - most) > 0:
        yield f"  and {counted(left, what) if what else f'{left:,}'} more"
