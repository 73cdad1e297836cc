"""The bytes of one file, and the way between byte offsets, lines and code points."""

from __future__ import annotations

import ast
import codecs
import io
import tokenize
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

from tensortrail.analyzer.reading.unreadable import Unreadable as Unreadable
from tensortrail.findings import Site
from tensortrail.patterns import pattern

_NEWLINE = pattern(rb"\r\n|\r|\n")
_LINES_TELL_INDENT = 2000
_BOM = b"\xef\xbb\xbf"
_LONGEST_SHOWN = 20_000
"""Bytes of source that a site carries along; generated files have lines of megabytes."""


_NO_TEXT = frozenset(("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"))
"""Encodings of names and of parts of texts: nobody writes source in them, and some take
quadratic time."""


class Source:
    """Raises Unreadable where the bytes are no text in the encoding that they name."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.encoding = _encoding(data)
        self._utf8 = data if self.editable else _in_utf8(data, self.encoding)
        self._last_position = (-1, 0)
        """A byte offset and its column, from which the next one is counted: lines may be long."""

    @property
    def editable(self) -> bool:
        """ast counts columns in UTF-8: byte edits are exact only where the file is UTF-8."""
        return self.encoding in ("utf-8", "utf-8-sig")

    @cached_property
    def _starts(self) -> list[int]:
        """Byte offset of each line, where ast's column 0 lies."""
        first = len(_BOM) if self._utf8.startswith(_BOM) else 0
        sizes = [len(line) for line in self._utf8.splitlines(keepends=True)]
        ends = list(accumulate(sizes))
        if ends and not self._utf8.endswith((b"\n", b"\r")):
            ends.pop()
        return [first, *ends]

    @cached_property
    def _ascii(self) -> bool:
        return self._utf8.isascii()

    def end_of(self, number: int) -> int:
        """Byte offset behind the line and its end."""
        return self._starts[number] if number < len(self._starts) else len(self._utf8)

    @cached_property
    def indent_unit(self) -> str:
        """One step of indentation as the file uses it."""
        for number in range(1, _LINES_TELL_INDENT):
            line = self.line(number)
            if line.startswith("\t"):
                return "\t"
            if line.startswith(" ") and line.strip():
                return " " * min(len(line) - len(line.lstrip(" ")), 4)
        return "    "

    def offset(self, line: int, column: int) -> int:
        """Byte offset of ast's (line, col_offset)."""
        return self._starts[line - 1] + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        return (
            self.offset(line, node.col_offset),  # type: ignore[attr-defined]
            self.offset(end_line, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def text(self, start: int, end: int) -> str:
        return self._utf8[start:end].decode("utf-8", "replace")

    def line(self, number: int) -> str:
        """The line without its line end; "" past the last one."""
        if not 1 <= number <= len(self._starts):
            return ""
        return self.text(self._starts[number - 1], self.end_of(number)).rstrip("\r\n")

    def lines_with(self, word: bytes) -> list[int]:
        """The numbers of the lines that hold the word."""
        found: list[int] = []
        at = self._utf8.find(word)
        while at >= 0:
            number = bisect_right(self._starts, at)
            found.append(max(number, 1))
            at = self._utf8.find(word, self.end_of(number))
        return found

    def line_end(self, offset: int) -> str:
        """How the line at this place ends, or the one before it, if it is the last."""
        number = self.position(offset)[0]
        for end in (self.end_of(number), self._starts[number - 1]):
            found = _NEWLINE.search(self._utf8[max(end - 2, 0) : end])
            if found and end:
                return found.group().decode()
        return "\n"

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column in code points of a byte offset."""
        line = max(1, bisect_right(self._starts, offset))
        start = self._starts[line - 1]
        if self._ascii:
            return line, offset - start + 1
        known, column = self._last_position
        if start <= known <= offset:
            column += len(self.text(known, offset))
        else:
            column = len(self.text(start, offset)) + 1
        self._last_position = offset, column
        return line, column

    def site(self, start: int, end: int, function: str = "") -> Site:
        line, column = self.position(start)
        end_line, end_column = self.position(end)
        shown = ""
        if self.end_of(end_line) - self._starts[line - 1] <= _LONGEST_SHOWN:
            shown = "\n".join(self.line(number) for number in range(line, end_line + 1))
        return Site(self.path, line, column, end_line, end_column, start, end, function, shown)


def _encoding(data: bytes) -> str:
    second_line_end = data.find(b"\n", data.find(b"\n") + 1)
    if b"coding" not in data[: second_line_end + 1 or None] and not data.startswith(_BOM):
        return "utf-8"
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        known = codecs.lookup(encoding).name
    except (SyntaxError, LookupError, ValueError) as error:
        unknown = Unreadable(f"unknown encoding: {error}")
        unknown.may_run = str(error).startswith("unknown")  # a package may bring it
        raise unknown from error
    if known in _NO_TEXT:
        raise Unreadable(f"unknown encoding: {encoding!r} is none for source code")
    return encoding


def _in_utf8(data: bytes, encoding: str) -> bytes:
    try:
        return data.decode(encoding).encode("utf-8", "replace")
    except (UnicodeError, LookupError, ValueError) as error:
        raise Unreadable(f"no valid {encoding}: {error}") from error
