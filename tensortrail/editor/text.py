"""The text of an open document, and the way between its characters and the client's positions."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from lsprotocol import types as lsp

_LINE_END = re.compile(r"\r\n|\r|\n")
"""What ends a line for the protocol and for Python; `str.splitlines` knows more."""


class Text:
    def __init__(self, content: str, encoding: str = "utf-16") -> None:
        self.content = content
        self._encoding = encoding
        """In whose units the client counts columns."""

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(each.end() for each in _LINE_END.finditer(self.content))]

    def line(self, number: int) -> str:
        """Without its end; counted from 0."""
        if not 0 <= number < len(self._starts):
            return ""
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self.content)
        return self.content[start:end].rstrip("\r\n")

    def position(self, line: int, column: int) -> lsp.Position:
        """Of a column in code points; both from 0."""
        return lsp.Position(line, self._units(self.line(line)[:column]))

    def at(self, offset: int) -> lsp.Position:
        line = bisect_right(self._starts, offset) - 1
        return self.position(line, offset - self._starts[line])

    def offset(self, position: lsp.Position) -> int:
        """Past the end of a line is its end, as the protocol says."""
        if position.line >= len(self._starts):
            return len(self.content)
        return self._starts[position.line] + self._characters(
            self.line(position.line), position.character
        )

    def changed(self, change: lsp.TextDocumentContentChangeEvent) -> Text:
        if not isinstance(change, lsp.TextDocumentContentChangePartial):
            return Text(change.text, self._encoding)
        start, end = self.offset(change.range.start), self.offset(change.range.end)
        content = self.content[:start] + change.text + self.content[max(start, end) :]
        return Text(content, self._encoding)

    @property
    def whole(self) -> lsp.Range:
        return lsp.Range(lsp.Position(0, 0), self.at(len(self.content)))

    def _units(self, text: str) -> int:
        if text.isascii() or self._encoding == "utf-32":
            return len(text)
        if self._encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(each > "\uffff" for each in text)

    def _characters(self, line: str, units: int) -> int:
        if line.isascii() or self._encoding == "utf-32":
            return min(units, len(line))
        taken = 0
        for number, character in enumerate(line):
            if taken >= units:
                return number
            taken += self._units(character)
        return len(line)
