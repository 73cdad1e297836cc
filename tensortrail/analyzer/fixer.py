"""Applies fixes to files: bottom-up, checked, atomically."""

from __future__ import annotations

import difflib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from tensortrail.analyzer.edits import apply
from tensortrail.findings import Edit, Finding, Fix, Safety

FindAgain = Callable[[str, bytes], Sequence[Finding]]
"""Judges a file's new bytes, so that a fix can be seen to have worked."""


@dataclass(frozen=True)
class Fixed:
    path: str
    before: bytes
    after: bytes
    applied: int
    left: tuple[Finding, ...]
    """What is still found afterwards."""
    dropped: tuple[str, ...] = ()
    """Fixes that were not applied after all, each with the reason."""


def fix_file(
    path: str, data: bytes, findings: Sequence[Finding], unsafe: bool, find_again: FindAgain
) -> Fixed:
    """Apply what may be applied, look again, until nothing is left to do.

    Every pass leaves fewer findings, or refuses a fix for good: so there is an end."""
    before, applied = data, 0
    refused: set[tuple[str, str, str]] = set()
    dropped: list[str] = []
    while todo := _todo(findings, unsafe, refused):
        chosen = _without_overlaps(todo)
        while True:  # fewer and fewer, until those that are left mend the file together
            new = apply(data, [edit for _, fix in chosen for edit in fix.edits])
            again = find_again(path, new) if compiles(new) else None
            why = _objection(findings, again)
            if not why or len(chosen) == 1:
                break
            chosen = chosen[: len(chosen) // 2]
        if again is not None and not why:
            data, findings, applied = new, again, applied + len(chosen)
            continue
        ((finding, _),) = chosen
        refused.add(_key(finding))
        dropped.append(f"{path}:{finding.site.line}: fix of {finding.code} dropped: {why}")
    return Fixed(path, before, data, applied, tuple(findings), tuple(dropped))


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


def apply_together(data: bytes, todo: Sequence[tuple[Finding, Fix]]) -> tuple[bytes, int]:
    """The bytes with all of these fixes that fit together, and how many that are."""
    applied = 0
    for _, fix in sorted(_without_overlaps(todo), key=lambda each: -each[1].edits[0].site.start):
        new = apply(data, fix.edits)
        if compiles(new):
            data, applied = new, applied + 1
    return data, applied


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
    files = {edit.site.file for edit in fix.edits}
    parts = []
    for file in sorted(files):
        try:
            before = read(file)
        except OSError:
            continue
        after = apply(before, [edit for edit in fix.edits if edit.site.file == file])
        diff = difflib.unified_diff(_lines(before), _lines(after), n=1)
        parts += [line.rstrip("\r\n") for line in list(diff)[2:]]
    return "\n".join(parts)


def _without_overlaps(todo: Sequence[tuple[Finding, Fix]]) -> list[tuple[Finding, Fix]]:
    """First come, first served; the others wait for the next pass."""
    taken: list[Edit] = []
    chosen = []
    for finding, fix in todo:
        if any(_overlap(edit, other) for edit in fix.edits for other in taken):
            continue
        taken += fix.edits
        chosen.append((finding, fix))
    return chosen


def _overlap(one: Edit, other: Edit) -> bool:
    if one.site.start == other.site.start:
        return True
    first, second = sorted((one.site, other.site), key=lambda site: site.start)
    return second.start < first.end


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
