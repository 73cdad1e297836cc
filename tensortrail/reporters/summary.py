"""The closing lines shared by the formats for people."""

from __future__ import annotations

from collections import Counter

from tensortrail.findings import Finding, Report, Safety, Severity


def closing(report: Report) -> str:
    if not report.findings:
        done = f" {_count(report.fixed, 'finding')} fixed." if report.fixed else ""
        return f"All clear: {_count(report.files_checked, 'file')} checked.{done}"
    by_severity = Counter(finding.severity for finding in report.findings)
    parts = [_count(by_severity[each], each.value) for each in Severity if by_severity[each]]
    text = f"Found {_count(len(report.findings), 'finding')} ({', '.join(parts)})"
    text += f" in {_count(report.files_checked, 'file')}."
    if report.fixed:
        text += f" {report.fixed} fixed."
    safe = sum(best(finding) is Safety.SAFE for finding in report.findings)
    unsafe = sum(best(finding) is Safety.UNSAFE for finding in report.findings)
    if safe:
        text += f" {safe} fixable with --fix."
    if unsafe:
        text += f" {unsafe} {'more ' if safe else ''}fixable with --fix --unsafe-fixes."
    return text


def best(finding: Finding) -> Safety | None:
    """The safety of the fix that would be applied."""
    return finding.fixes[0].safety if finding.fixes else None


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")
