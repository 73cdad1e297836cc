"""Whether a file still parses with some edits, from the part of it that they touch.

Compiling the whole file for every fix makes the work grow with the square of the findings. So only
what stands around the edits is compiled: the statement on its own, or its lines between two lines
of the same block. Where that cannot be told apart from the rest, the whole file is compiled."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Sequence

from tensortrail.analyzer.fixing.edits import apply
from tensortrail.analyzer.reading.source import Source
from tensortrail.analyzer.syntax.blocks import blocks_of
from tensortrail.findings import Edit

_SHORT = 4000
"""Bytes that are compiled without a thought about their number."""
_ALIKE = (ast.Call, ast.Attribute, ast.Subscript, ast.Name)
"""One may stand wherever another one is read."""
_SHARES = 20
"""How many times the size of the file is compiled for all of its fixes."""

Run = tuple[ast.stmt, ast.stmt]
"""The first and the last of some neighbouring statements of one block."""


class Checker:
    """Answers for one file. Fixes past the limit on its work are taken for ones that break it."""

    def __init__(self, source: Source, root: ast.Module) -> None:
        self._source = source
        self._root = root
        self._left = 1_000_000 + _SHARES * len(source.data)
        self._spans: dict[ast.stmt, dict[tuple[int, int], ast.expr]] = {}
        self._last: list[Run] = []
        """The statements around the last place that was asked about."""

    def holds(self, edits: Sequence[Edit]) -> bool:
        start = min(edit.site.start for edit in edits)
        end = max(edit.site.end for edit in edits)
        continued = any(edit.text.rstrip().endswith("\\") for edit in edits)
        runs = [] if continued else self._runs_around(start, end)
        if runs and runs[-1][0] is runs[-1][1]:
            statement = runs[-1][0]
            if self._is_replaced(statement, edits) or self._holds_alone(statement, edits):
                return True
        found = None
        for run in reversed(runs):
            found = self._holds_in_block(run, start, end, edits)
            if found is not None:
                break
        return bool(found) or self._compiles(apply(self._source.data, edits))

    # --- one expression ------------------------------------------------------------------
    def _is_replaced(self, statement: ast.stmt, edits: Sequence[Edit]) -> bool:
        """A long statement in which one expression takes the place of one of the same sort."""
        begin, stop = self._source.span(statement)
        if len(edits) != 1 or stop - begin <= _SHORT or "\n" in edits[0].text:
            return False
        if isinstance(statement, ast.Match):
            return False  # a pattern takes less than an expression
        if statement not in self._spans:
            self._spans[statement] = {
                self._source.span(each): each
                for each in ast.walk(statement)
                if isinstance(each, ast.expr) and isinstance(getattr(each, "ctx", _READ), ast.Load)
            }
        before = self._spans[statement].get((edits[0].site.start, edits[0].site.end))
        after = _expression(edits[0].text)
        if before is None or after is None:
            return False
        again = _expression(self._source.text(*self._source.span(before)))
        if again is None or ast.dump(before) != ast.dump(again):
            return False  # a place inside of an f-string
        both = isinstance(before, ast.Compare) and isinstance(after, ast.Compare)
        return both or (isinstance(before, _ALIKE) and isinstance(after, _ALIKE))

    # --- one statement -------------------------------------------------------------------
    def _holds_alone(self, statement: ast.stmt, edits: Sequence[Edit]) -> bool:
        """A statement without a body takes edits in one line, wherever it stands on its own."""
        begin, stop = self._source.span(statement)
        inside = all(begin <= each.site.start and each.site.end <= stop for each in edits)
        if not inside or hasattr(statement, "body") or any("\n" in each.text for each in edits):
            return False
        edited = apply(self._source.data[begin:stop], edits, begin)
        if edited[:1].isspace():
            return False  # what is left may begin further to the right than its block
        made = self._compiled(b"pass;" + edited + b";pass\n")
        return made is not None and len(made.body) > 2

    # --- lines of a block ----------------------------------------------------------------
    def _holds_in_block(self, run: Run, start: int, end: int, edits: Sequence[Edit]) -> bool | None:
        """The lines of the statements, or a head; None if they do not stand for themselves."""
        source = self._source
        first, last = _first_line(run[0]), run[1].end_lineno or run[1].lineno
        begin, stop = source.offset(first, 0), max(source.end_of(last), end)
        indent = self._indent(first)
        tail = indent + b"pass\n"
        body: list[ast.stmt] = getattr(run[0], "body", []) if run[0] is run[1] else []
        below = _first_line(body[0]) if body else 0
        if below > run[0].lineno and end < source.offset(below, 0):
            stop = source.offset(below, 0)
            tail = self._indent(below) + b"pass\n" + tail
        chunk = source.data[begin:stop]
        is_elif = isinstance(run[0], ast.If) and chunk.lstrip().startswith(b"elif")
        head = indent + (b"if 1: pass\n" if is_elif else b"pass\n")
        head = b"if 1:\n" + head if indent else head
        tail = tail if chunk.endswith(b"\n") else b"\n" + tail
        if start < begin or not self._compiles(head + chunk + tail):
            return None
        made = self._compiled(head + apply(chunk, edits, begin) + tail)
        if made is None:
            return False
        block = made.body[0].body if indent else made.body  # type: ignore[attr-defined]
        return len(block) > 1 + (not is_elif)  # something is left between the two lines

    def _indent(self, line: int) -> bytes:
        text = self._source.line(line)
        return text[: len(text) - len(text.lstrip())].encode()

    # --- ways ----------------------------------------------------------------------------
    def _runs_around(self, start: int, end: int) -> list[Run]:
        """The statements around these bytes, outermost first."""
        found = self._still_around(start, end)
        todo = self._inner(found[-1][0], start) if found else [self._root.body]
        while todo:
            block = todo.pop()
            at = bisect_right(block, start, key=self._begin) - 1
            upto = max(at, bisect_right(block, end, key=self._begin) - 1)
            if at < 0 or self._source.span(block[upto])[1] < end:
                continue
            found.append((block[at], block[upto]))
            todo = self._inner(block[at], start) if at == upto else []
        self._last = found
        return list(found)

    def _still_around(self, start: int, end: int) -> list[Run]:
        """Of the last answer, those that hold for this place too: edits come in the file's order,
        and a chain of `elif` is a tree as deep as it is long."""
        found = self._last
        while found:
            first, last = found[-1]
            if first is last and self._begin(first) <= start and end < self._source.span(first)[1]:
                break
            found.pop()
        return found

    def _inner(self, statement: ast.stmt, start: int) -> list[list[ast.stmt]]:
        """The blocks of a statement; of its handlers or cases only the one that may be meant."""
        found: list[list[ast.stmt]] = []
        for block in blocks_of(statement):
            if not block or isinstance(block[0], ast.stmt):
                found.append(block)
                continue
            at = bisect_right(block, start, key=lambda each: self._begin(each.body[0])) - 1
            if at >= 0:
                found.append(block[at].body)
        return found

    def _begin(self, statement: ast.stmt) -> int:
        line = _first_line(statement)
        decorated = line < statement.lineno
        return self._source.offset(line, 0) if decorated else self._source.span(statement)[0]

    def _compiles(self, data: bytes) -> bool:
        return self._compiled(data) is not None

    def _compiled(self, data: bytes) -> ast.Module | None:
        self._left -= max(0, len(data) - _SHORT)
        try:
            return ast.parse(data) if self._left > 0 else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


_READ = ast.Load()


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
