"""The Python in a file, whatever kind of file it is; what only notebooks need is imported late."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tensortrail.analyzer.reading.unreadable import Unreadable
from tensortrail.files import read

if TYPE_CHECKING:
    from tensortrail.findings import Finding, Site

NOTEBOOK = ".ipynb"
_POINTER = b"version https://git-lfs.github.com/spec/"
_LARGEST_POINTER = 1024
"""By the specification of Git LFS."""
Fits = Callable[[bytes], bool]


def _points(data: bytes) -> bool:
    return data.startswith(_POINTER)


def is_notebook(path: str) -> bool:
    return path.endswith(NOTEBOOK)


def is_pointer(path: str) -> bool:
    """Whether Git LFS keeps the content of this file elsewhere, and has not fetched it."""
    try:
        return os.path.getsize(path) < _LARGEST_POINTER and _points(read(path))
    except OSError:
        return False


def python_of(path: str, data: bytes) -> bytes:
    """The program to judge: the file, or the cells of a notebook one after another.

    Raises Unreadable for what is no notebook, though it is named so."""
    if not is_notebook(path):
        return data
    if _points(data):
        raise Unreadable("a pointer of Git LFS, not the notebook: `git lfs pull` fetches it")
    from tensortrail.analyzer.reading.notebooks.file import NotebookFile
    from tensortrail.analyzer.reading.notebooks.program import join

    return join(NotebookFile(data).cells)


def with_python(path: str, data: bytes, program: bytes) -> bytes:
    """The file with that program; what is not of a changed cell stays as it is, byte for byte."""
    if not is_notebook(path):
        return program
    from tensortrail.analyzer.reading.notebooks.file import NotebookFile
    from tensortrail.analyzer.reading.notebooks.program import join, split

    file = NotebookFile(data)
    before = split(join(file.cells))
    after = split(program)
    return file.with_sources({n: text for n, text in after.items() if text != before.get(n)})


def fits(path: str, program: bytes) -> Fits | None:
    """Whether a mended program can stand in for this one; None: whatever compiles can."""
    if not is_notebook(path):
        return None
    from tensortrail.analyzer.reading.notebooks.program import holds

    return lambda after: holds(program, after)


def lines_above(path: str, program: bytes, site: Site) -> int:
    """The lines of the program above the cell that a place is in."""
    if not is_notebook(path):
        return 0
    from tensortrail.analyzer.reading.notebooks.shown import Cells

    return Cells(program).first_line(site.line)


def end_of_cell(program: bytes, start: int) -> int:
    """Of a notebook: the byte at which the cell ends that is there."""
    from tensortrail.analyzer.reading.notebooks import program as cells

    return cells.end_of_cell(program, start)


def as_written(path: str, line: str) -> str:
    """A line of the program as it stands in the file."""
    if not is_notebook(path):
        return line
    from tensortrail.analyzer.reading.notebooks.magics import original

    return original(line)


def numbered(path: str, program: bytes) -> list[tuple[str, str]]:
    """The lines as people are shown them; those of notebooks are counted in their cells."""
    if not is_notebook(path):
        text = program.decode("utf-8", "replace")
        return [(str(number), line) for number, line in enumerate(text.splitlines(), 1)]
    from tensortrail.analyzer.reading.notebooks.program import lines

    return [("", ""), *lines(program)]  # the first line of the program is ours


def shown(findings: Iterable[Finding], read: Callable[[str], bytes]) -> list[Finding]:
    """The findings as people are shown them: those in notebooks by cell. `read` gives the Python
    in a file."""
    return [_by_cell(each, read) if _in_notebook(each) else each for each in findings]


def _by_cell(finding: Finding, read: Callable[[str], bytes]) -> Finding:
    from tensortrail.analyzer.reading.notebooks.shown import in_cells

    try:
        return in_cells(finding, read)
    except Unreadable:  # it has no cells, and says so
        return finding


def _in_notebook(finding: Finding) -> bool:
    sites = (finding.site, *(step.site for step in finding.trail), *finding.siblings)
    return any(is_notebook(each.file) for each in sites)
