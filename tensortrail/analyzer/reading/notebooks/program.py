"""The cells of a notebook as one program; a comment before each says which cell it is."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tensortrail.analyzer.reading.notebooks.magics import original, tamed

_MARK = re.compile(
    rb"^#~~ cell (\d+) at (\d+) by ([01])(?: broken at (\d+): ([^\n]*))?\n", re.MULTILINE
)
_HEAD = b"#~~ notebook\n"
"""Keeps a comment on the encoding, which cells have not, out of the first two lines."""
_LOOKS_LIKE_MARK = re.compile(r"^#~~ cell \d+ at", re.MULTILINE)


@dataclass(frozen=True)
class RawCell:
    """A code cell as it stands in the file."""

    number: int
    """From 1, cells of text counted."""
    text: str
    line: int = 1
    """Of the file, where its first line stands."""
    step: int = 1
    """Lines of the file for each of its own; 0 where all stand in one."""


@dataclass(frozen=True)
class Mark:
    start: int
    """Byte offset in the program."""
    end: int
    number: int
    line: int
    step: int
    broken_at: int
    error: str


def join(cells: Iterable[RawCell]) -> bytes:
    return _HEAD + b"".join(_marked(each) for each in cells)


def marks(program: bytes) -> Iterator[Mark]:
    for found in _MARK.finditer(program):
        number, line, step, broken = (int(each or 0) for each in found.groups()[:4])
        error = (found[5] or b"").decode()
        yield Mark(found.start(), found.end(), number, line, step, broken, error)


def end_of_cell(program: bytes, start: int) -> int:
    """Where the mark of the next one stands, or the program ends."""
    found = _MARK.search(program, start)
    return found.start() if found else len(program)


def lines(program: bytes) -> Iterator[tuple[str, str]]:
    """The program as people wrote it, each line with its number in its cell."""
    number = 0
    for line in program.replace(_HEAD, b"", 1).splitlines(keepends=True):
        if mark := _MARK.fullmatch(line):
            number = 0
            yield "", f"cell {int(mark[1])}"
        else:
            number += 1
            yield str(number), original(line.decode("utf-8", "replace").rstrip("\r\n"))


def split(program: bytes) -> Mapping[int, str]:
    """The text of each cell that could be read; what stands before all goes to the first."""
    known = list(marks(program))
    ends = [each.start for each in known[1:]] + [len(program)]
    texts = {
        mark.number: original(program[mark.end : end].removesuffix(b"\n").decode())
        for mark, end in zip(known, ends, strict=True)
        if not mark.error
    }
    before = program.replace(_HEAD, b"", 1)[: known[0].start - len(_HEAD)] if known else b""
    if before and texts:
        first = next(iter(texts))
        texts[first] = before.decode() + texts[first]
    return texts


def holds(before: bytes, after: bytes) -> bool:
    """Whether each cell is still there, and the program compiles as IPython does it."""
    numbers = [[each.number for each in marks(program)] for program in (before, after)]
    if _HEAD not in after or numbers[0] != numbers[1]:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(after, "<notebook>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return False
    return True


def _marked(cell: RawCell) -> bytes:
    known = tamed(cell.text)
    if not known.is_python:
        return b""
    error, line, text = known.error, known.line, b""
    if _LOOKS_LIKE_MARK.search(known.text):
        line, error = 1, "a comment in it reads like one of tensortrail's own"
    elif not error:
        try:
            text = f"{known.text}\n".encode()
        except UnicodeError:
            line, error = 1, "it holds half a character"
    what = " ".join(error.split()).encode("utf-8", "replace")
    told = b" broken at %d: %b" % (line, what) if error else b""
    return b"#~~ cell %d at %d by %d%b\n%b" % (cell.number, cell.line, cell.step, told, text)
