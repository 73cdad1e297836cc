"""The names and attributes of a file by what they are called; rules look for one in a function."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

N = TypeVar("N", bound=ast.AST)


class NameIndex(Generic[N]):
    """Of all nodes of one type of a file, in source order."""

    def __init__(self, nodes: Sequence[N], name_of: Callable[[N], str]) -> None:
        self._nodes = nodes
        self._numbers: defaultdict[str, list[int]] = defaultdict(list)
        for number, name in enumerate(map(name_of, nodes)):
            self._numbers[name].append(number)

    def named(self, name: str, first: int, end: int) -> list[N]:
        """Those of that name, from the one of number `first` up to the one before `end`."""
        numbers = self._numbers.get(name, [])
        some = numbers[bisect_left(numbers, first) : bisect_left(numbers, end)]
        return [self._nodes[number] for number in some]
