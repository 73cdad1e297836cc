"""What a fix would change, as people read it: a diff."""

from __future__ import annotations

import difflib
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from tensortrail.analyzer.fixing.edits import apply
from tensortrail.analyzer.reading.python_files import as_written, end_of_cell, lines_above
from tensortrail.findings import Edit, Finding, Fix, Site
from tensortrail.patterns import pattern

_HUNK = pattern(r"@@ -([\d,]+) \+([\d,]+) @@")
_LONGEST = 2_000
"""Characters of a line in a preview."""
_BOM = "\ufeff"
"""Nobody sees it in an editor."""


def unified_diff(
    path: str, before: bytes, after: bytes, heads: tuple[str, str] = ("a/", "b/")
) -> str:
    shown = path.replace(os.sep, "/")
    # A name with spaces ends at a tab, else `patch` takes its first word.
    old, new = (f"{head}{shown}" + "\t" * (" " in shown) for head in heads)
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(_lines(before), _lines(after), old, new)
    )


def with_previews(findings: Iterable[Finding], read: Callable[[str], bytes]) -> list[Finding]:
    """The findings, each fix with what it would change."""
    result = []
    for finding in findings:
        fixes = tuple(replace(fix, preview=_preview(fix, read)) for fix in finding.fixes)
        result.append(replace(finding, fixes=fixes) if fixes else finding)
    return result


def _preview(fix: Fix, read: Callable[[str], bytes]) -> str:
    parts: list[str] = []
    for file in sorted({edit.site.file for edit in fix.edits}):
        try:
            before = read(file)
        except OSError:
            continue
        edits = [edit for edit in fix.edits if edit.site.file == file]
        above = lines_above(file, before, edits[0].site)
        parts += (as_written(file, line) for line in _changed_lines(before, edits, above))
    return "\n".join(parts)


def _changed_lines(data: bytes, edits: Sequence[Edit], uncounted: int) -> Iterator[str]:
    """The edits as a diff; only the lines around them are compared."""
    start = _line_start(data, min(edit.site.start for edit in edits))
    start = _line_start(data, max(start - 1, 0))
    end = data.find(b"\n", max(edit.site.end for edit in edits))
    end = data.find(b"\n", end + 1) + 1 if end >= 0 else 0
    feeds = _line_feeds(data)
    if uncounted:
        # The lines above and below are those of the marks between cells.
        start = max(start, feeds[uncounted - 1] + 1)
        end = min(end or len(data), end_of_cell(data, start))
    before, above = data[start : end or len(data)], bisect_left(feeds, start) - uncounted
    moved = [replace(edit, site=_moved(edit.site, start)) for edit in edits]
    diff = difflib.unified_diff(_lines(before), _lines(apply(before, moved)), n=1)
    for line in list(diff)[2:]:
        head = _HUNK.fullmatch(line.rstrip("\n"))
        if head:
            yield f"@@ -{_further(head[1], above)} +{_further(head[2], above)} @@"
        else:
            text = line.rstrip("\r\n").replace(_BOM, "")
            yield text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


@lru_cache(maxsize=1)
def _line_feeds(data: bytes) -> list[int]:
    return [each.start() for each in re.finditer(b"\n", data)]


def _moved(site: Site, start: int) -> Site:
    return replace(site, start=site.start - start, end=site.end - start)


def _line_start(data: bytes, offset: int) -> int:
    return data.rfind(b"\n", 0, offset) + 1


def _further(where: str, lines: int) -> str:
    first, comma, count = where.partition(",")
    return f"{int(first) + lines}{comma}{count}"


def _lines(data: bytes) -> list[str]:
    """Only a line feed ends a line of a diff; `splitlines` knows more."""
    lines = data.decode("utf-8", "replace").split("\n")
    return [f"{line}\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]
