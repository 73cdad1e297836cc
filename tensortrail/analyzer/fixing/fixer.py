"""Applies fixes to files: bottom-up, checked, atomically."""

from __future__ import annotations

import difflib
import os
import re
import time
import warnings
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tensortrail.analyzer.choosing.own import IN_PART
from tensortrail.analyzer.fixing.edits import apply
from tensortrail.analyzer.reading.python_files import (
    Fits,
    as_written,
    end_of_cell,
    fits,
    lines_above,
    shown,
)
from tensortrail.findings import Edit, Finding, Fix, Safety, Site, alike
from tensortrail.patterns import pattern

_HUNK = pattern(r"@@ -([\d,]+) \+([\d,]+) @@")
_LONGEST = 2_000
"""Characters of a line in a preview."""
_BOM = "\ufeff"
"""Nobody sees it in an editor."""
MOST_SECONDS = 20.0
"""CPU time that the fixes of one file may take."""
FindAgain = Callable[[str, bytes], Sequence[Finding]]
"""Judges a file's new bytes, so that a fix can be seen to have worked."""


@alike
@dataclass(frozen=True, eq=False, repr=False)
class Fixed:
    path: str
    before: bytes
    after: bytes
    applied: int
    left: tuple[Finding, ...]
    """What is still found afterwards, without the fixes that were dropped."""
    dropped: tuple[str, ...] = ()
    """Fixes that were not applied after all, each with the reason."""


def fix_file(
    path: str, data: bytes, findings: Sequence[Finding], unsafe: bool, find_again: FindAgain
) -> Fixed:
    """Apply what may be applied, look again, until nothing is left to do.

    Every pass leaves fewer findings, or refuses a fix for good: so there is an end."""
    before, applied = data, 0
    holds = fits(path, data) or compiles
    refused: set[tuple[str, str, str]] = set()
    dropped: list[str] = []
    if _todo(findings, unsafe, refused) and (why := _cannot_be_fixed(data, findings, holds)):
        return Fixed(path, data, data, 0, tuple(findings), (f"{path}: no fix applied: {why}",))

    def judged(new: bytes) -> Sequence[Finding] | None:
        return find_again(path, new) if holds(new) else None

    end = time.process_time() + MOST_SECONDS
    while todo := _todo(findings, unsafe, refused):
        if time.process_time() > end:
            dropped.append(f"{path}: {len(todo)} fixes left: it takes too long to check them")
            break
        chosen, new, again, why = _together(_without_overlaps(todo), data, findings, judged)
        if again is not None and not why:
            data, findings, applied = new, again, applied + len(chosen)
            continue
        ((finding, _),) = chosen
        refused.add(_key(finding))
        dropped.append(f"{_place(finding, data)}: fix of {finding.code} dropped: {why}")
    left = tuple(_without_refused(each, refused) for each in findings)
    return Fixed(path, before, data, applied, left, tuple(dropped))


def _place(finding: Finding, data: bytes) -> str:
    (told,) = shown([finding], lambda _: data)
    cell = f":cell {told.site.cell}" if told.site.cell else ""
    return f"{told.site.file}{cell}:{told.site.line}"


def _without_refused(finding: Finding, refused: Collection[tuple[str, str, str]]) -> Finding:
    """Nobody is to try again what was seen not to work."""
    return replace(finding, fixes=finding.fixes[1:]) if _key(finding) in refused else finding


def _cannot_be_fixed(data: bytes, findings: Sequence[Finding], holds: Fits) -> str:
    """Why no fix of the file can be checked; "" if they can."""
    if any(each.code == IN_PART for each in findings):
        return "it was checked in part only"
    return "" if holds(data) else "it does not compile as it stands"


def _todo(
    findings: Sequence[Finding], unsafe: bool, refused: Collection[tuple[str, str, str]]
) -> list[tuple[Finding, Fix]]:
    return [
        (finding, fix)
        for finding in findings
        for fix in finding.fixes[:1]
        if allowed(fix, unsafe) and _key(finding) not in refused
    ]


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.message, finding.site.source


def _objection(findings: Sequence[Finding], again: Sequence[Finding] | None) -> str:
    """What speaks against the new bytes; "" if they are better than the old ones."""
    if again is None:
        return "the file would not compile"
    codes = Counter(each.code for each in again)
    new = codes - Counter(each.code for each in findings)
    if new:
        return f"it would bring {', '.join(sorted(new))}"
    return "" if len(again) < len(findings) else "the finding would remain"


def allowed(fix: Fix, unsafe: bool) -> bool:
    return fix.safety is Safety.SAFE or (unsafe and fix.safety is Safety.UNSAFE)


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


def _together(
    chosen: list[tuple[Finding, Fix]],
    data: bytes,
    findings: Sequence[Finding],
    judged: Callable[[bytes], Sequence[Finding] | None],
) -> tuple[list[tuple[Finding, Fix]], bytes, Sequence[Finding] | None, str]:
    """Fewer and fewer fixes, until those that are left mend the file together: these, the file
    with them, what is found in it then, and what speaks against it."""
    while True:
        new = apply(data, [edit for _, fix in chosen for edit in fix.edits])
        again = judged(new)
        why = _objection(findings, again)
        if not why or len(chosen) == 1:
            return chosen, new, again, why
        chosen = chosen[: len(chosen) // 2]


def _without_overlaps(todo: Sequence[tuple[Finding, Fix]]) -> list[tuple[Finding, Fix]]:
    """First come, first served; the others wait for the next pass."""
    taken: list[tuple[int, int]] = []
    chosen = []
    for finding, fix in todo:
        places = sorted((edit.site.start, edit.site.end) for edit in fix.edits)
        if all(_is_free(place, taken) for place in places):
            for place in places:
                insort(taken, place)
            chosen.append((finding, fix))
    return chosen


def _is_free(place: tuple[int, int], taken: Sequence[tuple[int, int]]) -> bool:
    """`taken` is in order and without overlaps: only the neighbours can be in the way."""
    start, end = place
    at = bisect_left(taken, (start, -1))
    before, after = taken[at - 1 : at], taken[at : at + 1]
    return all(other[1] <= start for other in before) and all(
        other[0] != start and other[0] >= end for other in after
    )


def compiles(data: bytes) -> bool:
    """More than parsing: a keyword given twice, say, is seen by the compiler only."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "<fixed>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return False
    return True


def _lines(data: bytes) -> list[str]:
    """Only a line feed ends a line of a diff; `splitlines` knows more."""
    lines = data.decode("utf-8", "replace").split("\n")
    return [f"{line}\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]
