"""The bytes of an `.ipynb` file: where its code cells stand, and how one is replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tensortrail.analyzer.reading.notebooks.program import RawCell
from tensortrail.analyzer.reading.source import Unreadable

_SPACE = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder()


@dataclass(frozen=True)
class _Source:
    """The value of a cell's `source`, between two offsets of the text."""

    number: int
    start: int
    end: int
    value: list[str] | str


class _OfAnotherFormat(Unreadable):
    """Nothing is wrong with an older one; no program opens a newer one, as there is none."""

    may_run = True

    def __init__(self, number: int) -> None:
        super().__init__(
            f"a notebook of format {number}, which was not checked: save it again in format 4"
            if number < 4
            else f"Jupyter does not open this notebook: `nbformat` is {number}, and 4 is the newest"
        )


class NotebookFile:
    """Raises Unreadable where the bytes are no notebook of format 4."""

    def __init__(self, data: bytes) -> None:
        try:
            self._text = data.decode("utf-8")
            self._sources = list(self._found())
        except Unreadable:
            raise
        except RecursionError as error:
            raise Unreadable("no notebook: nested too deeply") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = "it ends too early" if isinstance(error, IndexError) else error
            raise Unreadable(f"not a notebook of format 4: {why}") from error

    @property
    def cells(self) -> Iterator[RawCell]:
        line, at = 1, 0
        for each in self._sources:
            first = each.start
            if isinstance(each.value, list):
                first = _next(self._text, each.start + 1)
            line += self._text.count("\n", at, first)
            at = first
            rows = self._text.count("\n", first, each.end)
            step = int(isinstance(each.value, list) and rows >= len(each.value))
            yield RawCell(each.number, "".join(each.value), line, step)

    def with_sources(self, changed: Mapping[int, str]) -> bytes:
        text = self._text
        for each in reversed(self._sources):
            if each.number in changed:
                new = self._literal(each, changed[each.number])
                text = text[: each.start] + new + text[each.end :]
        return text.encode()

    def _found(self) -> Iterator[_Source]:
        text = self._text
        top = dict(_members(text, _next(text, int(text.startswith("\ufeff")))))
        read = {name: _value(text, at) for name, at in top.items() if name != "cells"}
        number = int(read.get("nbformat", 4 if "cells" in top else 0))
        if number != 4:
            raise _OfAnotherFormat(number) if number else ValueError("it names no format")
        if not _is_python(read.get("metadata")):
            return
        for number, (at, cell) in enumerate(_elements(text, top["cells"]), 1):
            _expect(text, at, "{")
            if cell["cell_type"] != "code" or not _is_python_cell(cell.get("metadata", {})):
                continue
            start = dict(_members(text, at))["source"]
            value, end = _decoder.raw_decode(text, start)
            if not isinstance(value, str) and not all(isinstance(line, str) for line in value):
                raise TypeError(f"the source of cell {number} is not text")
            yield _Source(number, start, end, value)

    def _literal(self, old: _Source, text: str) -> str:
        """The text as the file writes one; lines that were there keep their spelling."""
        raw = self._text[old.start : old.end]
        ascii = raw.isascii() and not "".join(old.value).isascii()
        if isinstance(old.value, str):
            return json.dumps(text, ensure_ascii=ascii)
        spelled: dict[str, str] = {}
        at, ends = _next(self._text, old.start + 1), [old.start + 1]
        between = ""
        for line in old.value:
            between = between or (self._text[ends[-1] : at] if len(ends) == 2 else "")
            _, end = _decoder.raw_decode(self._text, at)
            spelled[line] = self._text[at:end]
            ends.append(end)
            at = _next(self._text, _next(self._text, end) + 1) if end < old.end else end
        first = self._text[old.start + 1 : _next(self._text, old.start + 1)]
        last = self._text[ends[-1] : old.end - 1]
        lines = [spelled.get(line) or json.dumps(line, ensure_ascii=ascii)
                 for line in text.splitlines(keepends=True)]  # fmt: skip
        return f"[{first}{(between or f',{first}').join(lines)}{last}]"


def _next(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """The names of an object and where their values begin."""
    _expect(text, at, "{")
    at = _next(text, at + 1)
    while text[at] != "}":
        _expect(text, at, '"')
        name, at = _decoder.raw_decode(text, at)
        at = _next(text, at)
        _expect(text, at, ":")
        at = _next(text, at + 1)
        yield name, at
        at = _behind(text, at, "}")


def _elements(text: str, at: int) -> Iterator[tuple[int, Any]]:
    """Where the values of a list begin, and what they are."""
    _expect(text, at, "[")
    at = _next(text, at + 1)
    while text[at] != "]":
        value, end = _decoder.raw_decode(text, at)
        yield at, value
        at = _next_value(text, end, "]")


def _behind(text: str, at: int, close: str) -> int:
    """Where the value after the one that begins there begins, or the closing bracket stands."""
    return _next_value(text, _decoder.raw_decode(text, at)[1], close)


def _next_value(text: str, end: int, close: str) -> int:
    """Where the value behind one that ends there begins, or the closing bracket stands."""
    at = _next(text, end)
    if text[at] == close:
        return at
    _expect(text, at, ",")
    return _next(text, at + 1)


def _value(text: str, at: int) -> Any:
    return _decoder.raw_decode(text, at)[0]


def _expect(text: str, at: int, character: str) -> None:
    if text[at : at + 1] != character:
        raise ValueError(f"{character} expected at character {at}")


def _is_python(metadata: Any) -> bool:
    """A notebook that names no language is Python's."""
    named: list[Any] = [
        metadata.get("language_info", {}).get("name"),
        metadata.get("kernelspec", {}).get("language"),
    ] if metadata else []  # fmt: skip
    known = [str(each).lower() for each in named if each]
    return not known or "python" in known or "ipython" in known


def _is_python_cell(metadata: Any) -> bool:
    told = metadata.get("vscode", {}) if isinstance(metadata, dict) else {}
    language = told.get("languageId") if isinstance(told, dict) else None
    return language in (None, "python")
