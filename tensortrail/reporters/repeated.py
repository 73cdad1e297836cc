"""Findings that say the same of many lines of one file, which people need to read once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from tensortrail.findings import Finding

_LEAST = 3
"""Fewer are shown one by one."""
_MOST_LINES = 12


def told_once(findings: Sequence[Finding]) -> Iterator[tuple[Finding, Sequence[Finding]]]:
    """Each finding that is shown, with the others that its text stands for."""
    alike: dict[Hashable, list[Finding]] = {}
    groups = [alike.setdefault(_said(each), []) for each in findings]
    for each, group in zip(findings, groups, strict=True):
        group.append(each)
    for each, group in zip(findings, groups, strict=True):
        if len(group) < _LEAST:
            yield each, ()
        elif each is group[0]:
            yield each, group[1:]


def lines_of(findings: Iterable[Finding]) -> str:
    """`1568-1570, 1587, ...`"""
    lines = {each.site.line for each in findings}
    starts = sorted(each for each in lines if each - 1 not in lines)
    ends = sorted(each for each in lines if each + 1 not in lines)
    parts = [f"{a}-{b}" if a < b else str(a) for a, b in zip(starts, ends, strict=True)]
    return ", ".join([*parts[:_MOST_LINES], *["..."] * (len(parts) > _MOST_LINES)])


def _said(finding: Finding) -> Hashable:
    site = finding.site
    if site.cell or not site.line:
        return id(finding)
    trail = tuple((step.message, step.site) for step in finding.trail)
    evidence = tuple(finding.evidence.items())
    settings = tuple(finding.settings)
    return finding.code, finding.severity, site.file, finding.message, trail, settings, evidence
