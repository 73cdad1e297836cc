"""An exception and those behind it: its causes, and what was handled when it was raised."""

from __future__ import annotations

from collections.abc import Iterator


def can_be_told(error: BaseException) -> bool:
    """A class of the program's may fail to describe itself; nothing is said of its exceptions."""
    try:
        return all(isinstance(str(each), str) for each in with_those_behind(error))
    except Exception:
        return False


def with_those_behind(error: BaseException | None) -> Iterator[BaseException]:
    """Each once; also those that a traceback does not show."""
    seen: set[int] = set()
    todo = [error]
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [each.__cause__, each.__context__]
