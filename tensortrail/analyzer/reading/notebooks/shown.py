"""Places in the program of a notebook, told as places in its cells."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from tensortrail.analyzer.reading.notebooks.program import Mark, marks
from tensortrail.analyzer.reading.parsing import VERSION
from tensortrail.analyzer.reading.source import Source
from tensortrail.findings import Edit, Finding, Fix, Setting, Site, Step

_NOTEBOOK = ".ipynb"
_LINE = re.compile(r"\bline (\d+)(?! of )")
"""In a message, of the file that the finding is in."""


class Cells:
    """Which cell each line of a program is in."""

    def __init__(self, program: bytes) -> None:
        source = Source("", program)
        self._marks = list(marks(program))
        self._lines = [source.position(each.start)[0] for each in self._marks]

    def place(self, site: Site) -> Site:
        mark, above = self._of(site.line)
        if mark is None:
            return site
        line = site.line - above or mark.broken_at or 1
        lines = site.end_line - site.line
        in_file = mark.line + (line - 1) * mark.step
        return replace(
            site,
            line=line,
            end_line=line + lines,
            cell=mark.number,
            file_line=in_file,
            file_end_line=in_file + lines * mark.step,
        )

    def in_words(self, message: str) -> str:
        """The message with the lines that it names as lines of cells."""

        def place(found: re.Match[str]) -> str:
            placed = self.place(Site("", int(found[1])))
            return f"line {placed.line} of cell {placed.cell}" if placed.cell else found[0]

        return _LINE.sub(place, message)

    def first_line(self, line: int) -> int:
        """The line of the program above the cell which that line is in."""
        return self._of(line)[1]

    def line(self, cell: int) -> int:
        """The line of the program above that cell's first one; 0 if it is none of Python."""
        numbers = [each.number for each in self._marks]
        return self._lines[numbers.index(cell)] if cell in numbers else 0

    def _of(self, line: int) -> tuple[Mark | None, int]:
        at = bisect_right(self._lines, line) - 1
        if at < 0:
            return (self._marks[0], line - 1) if self._marks else (None, 0)
        return self._marks[at], self._lines[at]


def broken(path: str, program: bytes) -> Iterator[tuple[str, Site]]:
    """The cells that are no Python: what Python says of each, and where it stands."""
    for each in marks(program):
        if each.error:
            line, _ = Source(path, program).position(each.start)
            yield f"not valid Python {VERSION}: {each.error}", Site(path, line)


def in_cells(finding: Finding, read: Callable[[str], bytes]) -> Finding:
    is_notebook = finding.site.file.endswith(_NOTEBOOK)

    def words(text: str) -> str:
        return _cells(read(finding.site.file)).in_words(text) if is_notebook else text

    def place(site: Site) -> Site:
        return _cells(read(site.file)).place(site) if site.file.endswith(_NOTEBOOK) else site

    def edit(each: Edit) -> Edit:
        return replace(each, site=place(each.site))

    def fix(each: Fix) -> Fix:
        return replace(each, edits=tuple(map(edit, each.edits)))

    def setting(each: Setting) -> Setting:
        return replace(each, at=place(each.at) if each.at else None)

    def step(each: Step) -> Step:
        return replace(each, site=place(each.site), message=words(each.message))

    return replace(
        finding,
        site=place(finding.site),
        message=words(finding.message),
        trail=tuple(map(step, finding.trail)),
        fixes=tuple(map(fix, finding.fixes)),
        settings=tuple(map(setting, finding.settings)),
        siblings=tuple(map(place, finding.siblings)),
    )


@lru_cache(maxsize=8)
def _cells(program: bytes) -> Cells:
    return Cells(program)
