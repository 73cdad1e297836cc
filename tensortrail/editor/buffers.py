"""What is open in the editor: a file, or a notebook, whose cells are documents of their own."""

from __future__ import annotations

import tokenize
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Protocol

from lsprotocol import types as lsp

from tensortrail.analyzer.fixing.edits import apply
from tensortrail.analyzer.fixing.fixer import compiles
from tensortrail.analyzer.reading.notebooks.program import RawCell, holds, join, split
from tensortrail.analyzer.reading.notebooks.shown import Cells
from tensortrail.editor.text import Text
from tensortrail.findings import Edit, Site

Edits = Mapping[str, Sequence[lsp.TextEdit]]
"""By document."""


class Buffer(Protocol):
    uri: str
    name: str
    """The path of its file, or what stands for one."""
    version: int

    @property
    def documents(self) -> Sequence[str]:
        """Where diagnostics go."""

    @property
    def program(self) -> bytes: ...

    def place(self, site: Site) -> tuple[str, lsp.Range]:
        """The document and the range of a place in the program."""

    def line_of(self, document: str, line: int) -> int:
        """The line of the program, from 1, for one of a document, from 0."""

    def edits(self, edits: Iterable[Edit]) -> Edits:
        """The edits of the program as the client makes them; none if they do not fit."""


class File:
    def __init__(self, uri: str, name: str, text: Text, version: int) -> None:
        self.uri, self.name, self.text, self.version = uri, name, text, version

    @property
    def documents(self) -> Sequence[str]:
        return (self.uri,)

    @property
    def program(self) -> bytes:
        """The bytes that saving it would write."""
        data = self.text.content.encode("utf-8", "replace")
        try:
            encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
            return data if encoding == "utf-8-sig" else self.text.content.encode(encoding)
        except (SyntaxError, LookupError, ValueError):
            return data

    def place(self, site: Site) -> tuple[str, lsp.Range]:
        return self.uri, range_in(self.text, site)

    def line_of(self, document: str, line: int) -> int:
        return line + 1

    def edits(self, edits: Iterable[Edit]) -> Edits:
        program, chosen = self.program, list(edits)
        if not chosen or not compiles(apply(program, chosen)):
            return {}
        made = [lsp.TextEdit(self._range(program, each.site), each.text) for each in chosen]
        return {self.uri: made}

    def _range(self, program: bytes, site: Site) -> lsp.Range:
        start = len(program[: site.start].decode("utf-8", "replace"))
        end = start + len(program[site.start : site.end].decode("utf-8", "replace"))
        return lsp.Range(self.text.at(start), self.text.at(end))


class Notebook:
    def __init__(self, uri: str, name: str, version: int) -> None:
        self.uri, self.name, self.version = uri, name, version
        self.cells: list[str] = []
        """The documents of all cells, in order."""
        self.texts: dict[str, Text] = {}
        """Of the code cells in Python."""

    @property
    def documents(self) -> Sequence[str]:
        return [each for each in self.cells if each in self.texts]

    @property
    def program(self) -> bytes:
        return join(
            RawCell(number, self.texts[cell].content)
            for number, cell in enumerate(self.cells, 1)
            if cell in self.texts
        )

    def place(self, site: Site) -> tuple[str, lsp.Range]:
        placed = Cells(self.program).place(site)
        cell = self.cells[min(max(placed.cell, 1), len(self.cells)) - 1]
        return cell, range_in(self.texts.get(cell, Text("")), placed)

    def line_of(self, document: str, line: int) -> int:
        if document not in self.cells:
            return 0
        return Cells(self.program).line(self.cells.index(document) + 1) + line + 1

    def edits(self, edits: Iterable[Edit]) -> Edits:
        program, chosen = self.program, list(edits)
        after = apply(program, chosen)
        if not chosen or not holds(program, after):
            return {}
        before = split(program)
        return {
            self.cells[number - 1]: [self._replaced(self.cells[number - 1], text)]
            for number, text in split(after).items()
            if text != before.get(number)
        }

    def _replaced(self, cell: str, text: str) -> lsp.TextEdit:
        return lsp.TextEdit(self.texts[cell].whole, text)


def range_in(text: Text, site: Site) -> lsp.Range:
    start = text.position(max(site.line - 1, 0), max(site.column - 1, 0))
    if site.start < 0 and (site.line, site.column) == (site.end_line, site.end_column):
        end = text.position(start.line, len(text.line(start.line)))  # the line is known, no more
    else:
        end = text.position(max(site.end_line - 1, 0), max(site.end_column - 1, 0))
    return lsp.Range(start, end)
