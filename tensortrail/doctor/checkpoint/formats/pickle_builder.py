"""The stack and the memory of a pickle, which become a tree of names and plain values."""

from __future__ import annotations

from typing import Any

from tensortrail.doctor.checkpoint.formats.pickle_values import Made, Name, Reference
from tensortrail.doctor.checkpoint.formats.ranges import TooMuch

MOST_MEMORY = 280_000_000
"""Bytes that the tree may take, by the estimate below."""
_FOR_A_CONTAINER, _FOR_A_NAME = 110, 90
_MOST_REMEMBERED = 1 << 32
_WIDEST_NUMBER = 64
"""Bits of a whole number that serves as a key."""
MARK = object()


class Builder:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.names: dict[Name, None] = {}
        self.spent = 0
        self.at = 0

    def spend(self, bytes_: int) -> None:
        self.spent += bytes_
        if self.spent > MOST_MEMORY:
            raise TooMuch(f"a pickle that would take more than {MOST_MEMORY:,} bytes to read")

    def push(self, value: Any) -> None:
        self.spend(_FOR_A_CONTAINER)
        self.stack.append(value)

    def pop(self) -> Any:
        """The value on top; a mark is none."""
        value = self.stack.pop()
        if value is MARK:
            raise IndexError
        return value

    def top(self) -> Any:
        value = self.pop()
        self.stack.append(value)
        return value

    def marked(self) -> list[Any]:
        """What stands above the last mark, which goes too."""
        at = len(self.stack) - 1
        while self.stack[at] is not MARK:
            at -= 1
            if at < 0:
                raise IndexError
        items = self.stack[at + 1 :]
        del self.stack[at:]
        return items

    def name(self, module: Any, name: Any) -> None:
        if not (isinstance(module, str) and isinstance(name, str)):
            raise TypeError
        self.spend(_FOR_A_NAME)
        found = Name(module, name)
        self.names[found] = None
        self.push(found)

    def remember(self, place: int | None = None) -> None:
        if place is not None and not 0 <= place < _MOST_REMEMBERED:
            raise TypeError
        self.spend(_FOR_A_CONTAINER)
        self.memo[len(self.memo) if place is None else place] = self.top()

    def make(self, what: Any, arguments: Any) -> None:
        if not isinstance(what, (Name, Made)):
            raise TypeError
        ordered = isinstance(what, Name) and str(what) == "collections.OrderedDict"
        if ordered and isinstance(arguments, tuple) and len(arguments) > 1:
            raise TypeError
        self.push({} if ordered and arguments == () else Made(what, arguments))

    def put(self, pairs: list[Any]) -> None:
        target = self.top()
        kept = target.items if isinstance(target, Made) else target
        if not isinstance(kept, dict):
            raise TypeError
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            self.spend(_FOR_A_CONTAINER)
            kept[_as_key(key)] = value

    def add(self, items: list[Any]) -> None:
        target = self.top()
        if isinstance(target, list):
            target.extend(items)
        elif not isinstance(target, Made):
            raise TypeError

    def build(self) -> None:
        state = self.pop()
        target = self.top()
        if isinstance(target, Made):
            target.state = state
        elif not isinstance(target, dict):
            raise TypeError


def _as_key(key: Any) -> Any:
    """A key that costs the same whatever it holds: keys of files can be chosen to collide."""
    if isinstance(key, (str, bytes)):
        return key
    if isinstance(key, bool) or key is None:
        return str(key)
    if isinstance(key, int) and key.bit_length() <= _WIDEST_NUMBER:
        return str(key)
    return key if isinstance(key, (Made, Reference)) else Reference(key)
