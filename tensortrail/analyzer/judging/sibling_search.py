"""The files that may have an expression of a shape, and where in them it is."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tensortrail.analyzer.judging.shapes import DROPPED, KINDS, shape_of
from tensortrail.analyzer.judging.shapes_seen import ShapesSeen
from tensortrail.analyzer.reading.large_files import with_all
from tensortrail.analyzer.reading.python_files import python_of
from tensortrail.analyzer.reading.source import Source
from tensortrail.analyzer.reading.texts import Texts
from tensortrail.findings import Site

MOST = 10
_TOO_COMMON = 40
"""Files: words found in more of them say too little about a shape."""
_LARGEST = 1_000_000
"""Bytes of a file that is looked through; larger ones are generated, and nobody mends those."""

Shapes = Mapping[str, frozenset[bytes]]
"""Shapes with the words that every file with such an expression has."""


class SiblingSearch:
    def __init__(self, files: Sequence[str], texts: Texts, seen: ShapesSeen) -> None:
        self._files = files
        self._texts = texts
        self._seen = seen

    def places(self, shapes: Shapes) -> dict[str, list[Site]]:
        """Where each shape is; a shape of words that are everywhere is nowhere."""
        found: dict[str, list[Site]] = {}
        wanted: dict[str, set[str]] = {}
        for shape, paths in self._holders(shapes).items():
            for path in paths if len(paths) <= _TOO_COMMON else ():
                known = self._seen.sites(shape, path)
                if known is None:
                    wanted.setdefault(path, set()).add(shape)
                else:
                    found.setdefault(shape, []).extend(known)
        for path, missing in wanted.items():
            new = self._in_file(path, {shape: shapes[shape] for shape in missing})
            for shape in missing:
                self._seen.put(shape, path, new.get(shape, []))
                found.setdefault(shape, []).extend(new.get(shape, []))
        for sites in found.values():
            sites.sort(key=lambda site: (site.file, site.line, site.column))
        return found

    def _holders(self, shapes: Shapes) -> dict[str, list[str]]:
        """The files that have all words of a shape; only what has changed is read again."""
        holders = {shape: self._seen.holders(shape) for shape in shapes}
        new = [shape for shape in shapes if not self._seen.knows(shape)]
        for path in self._files:
            for shape in self._held(path, new if self._seen.unchanged(path) else shapes, shapes):
                holders[shape].append(path)
                self._seen.put(shape, path, None)
        return holders

    def _held(self, path: str, asked: Iterable[str], shapes: Shapes) -> list[str]:
        if not asked:
            return []
        try:
            data = self._texts.of(path)
        except OSError:
            return []
        if len(data) > _LARGEST:
            return []
        return [shape for shape in asked if all(word in data for word in shapes[shape])]

    def _in_file(self, path: str, wanted: Shapes) -> dict[str, list[Site]]:
        try:
            data = python_of(path, self._texts.of(path))
            source = Source(path, data)
            # a comment on the encoding, which `ast` has to see, may stand in another statement
            tree = ast.parse(with_all(data, wanted.values()) if source.editable else data)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return {}
        lines = sorted({line for each in wanted for line in _lines(source, each, wanted[each])})
        found: dict[str, list[Site]] = {}
        dropped: set[ast.expr] = set()
        counts: Counter[str] = Counter()
        for node in _on_lines(tree, lines):
            if isinstance(node, ast.Expr):
                dropped.add(node.value)
            elif isinstance(node, KINDS):
                shape = (DROPPED if node in dropped else "") + shape_of(node)
                if shape in wanted and counts[shape] <= MOST:
                    counts[shape] += 1
                    found.setdefault(shape, []).append(source.site(*source.span(node)))
        return found


def _lines(source: Source, shape: str, words: Iterable[bytes]) -> Sequence[int]:
    """Lines of which every expression of that shape has one: those with its rarest word."""
    parts = set(shape.encode().split())
    certain = [source.lines_with(word) for word in words if word in parts]
    everywhere = range(1, source.position(len(source.data))[0] + 1)
    return min(certain, key=len) if certain else everywhere


def _on_lines(tree: ast.AST, lines: Sequence[int]) -> Iterator[ast.AST]:
    """The nodes that reach over one of the lines, parents before children."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        first = getattr(node, "lineno", None)
        if first is not None:
            first = min([first, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            at = bisect_left(lines, first)
            if at == len(lines) or lines[at] > node.end_lineno:  # type: ignore[attr-defined]
                continue
        yield node
        stack += reversed(list(ast.iter_child_nodes(node)))
