"""The syntax trees that were asked for last, of files that are judged and of those they refer to.

What is found out about a file depends on who asks; its tree does not, and is not made twice."""

from __future__ import annotations

from weakref import WeakValueDictionary

from tensortrail.analyzer.reading.parsing import parsed
from tensortrail.analyzer.syntax.tree import Tree

_KEPT = 400_000
"""Bytes of source whose trees are kept; they take some fifty times as much."""


class Trees:
    def __init__(self) -> None:
        self._known: dict[str, tuple[bytes, Tree]] = {}
        self._size = 0
        self._held: WeakValueDictionary[tuple[str, bytes], Tree] = WeakValueDictionary()
        """Those that somebody still has, kept here or not."""

    def of(self, path: str, data: bytes) -> Tree:
        """Raises Unreadable for bytes that are no Python source."""
        known = self._known.pop(path, None)
        if known is not None and known[0] == data:
            self._known[path] = known  # last in the order of use
            return known[1]
        self._size -= len(known[0]) if known is not None else 0
        tree = self._held.get((path, data))
        if tree is None:
            tree = self._held[path, data] = Tree(parsed(data))
        self._known[path] = data, tree
        self._size += len(data)
        self._trim()
        return tree

    def _trim(self) -> None:
        while self._size > _KEPT and len(self._known) > 1:
            data, _ = self._known.pop(next(iter(self._known)))
            self._size -= len(data)
