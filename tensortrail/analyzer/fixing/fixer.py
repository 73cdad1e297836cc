"""Applies fixes to files: bottom-up, checked, atomically."""

from __future__ import annotations

import time
import warnings
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from tensortrail.analyzer.choosing.own_findings import IN_PART
from tensortrail.analyzer.fixing.edits import apply
from tensortrail.analyzer.reading.python_files import Fits, fits, shown
from tensortrail.findings import Finding, Fix, Safety, alike

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
