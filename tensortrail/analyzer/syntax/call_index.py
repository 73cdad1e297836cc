"""The calls of a file by the name of what they call; every rule asks for some."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence


class CallIndex:
    """Of all calls of a file, in source order. `qualified` gives the dotted name of a callee."""

    def __init__(self, calls: Sequence[ast.Call], qualified: Callable[[ast.AST], str]) -> None:
        self._calls = calls
        self._numbers: dict[str, list[int]] = {}
        for number, call in enumerate(calls):
            for name in _names(call, qualified(call.func)):
                self._numbers.setdefault(name, []).append(number)

    def named(self, names: Iterable[str], first: int, end: int) -> Iterator[ast.Call]:
        """Calls by one of these names, the whole dotted name or the last part of it, from the
        call of number `first` up to the one before number `end`."""
        some = [self._between(name, first, end) for name in set(names)]
        numbers = some[0] if len(some) == 1 else sorted(set().union(*some))
        return (self._calls[number] for number in numbers)

    def _between(self, name: str, first: int, end: int) -> Sequence[int]:
        numbers = self._numbers.get(name, [])
        return numbers[bisect_left(numbers, first) : bisect_left(numbers, end)]


def _names(call: ast.Call, dotted: str) -> set[str]:
    own = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    names = {dotted, dotted.rpartition(".")[2], own}
    names.discard("")
    return names
