"""What the formats for people share: the closing line and the mark of a fixable finding."""

from __future__ import annotations

from collections import Counter

from tensortrail.findings import Finding, Report, Safety, Severity, Site
from tensortrail.inert import inert_path
from tensortrail.plurals import counted, quiet_notes

_MARKS = {Safety.SAFE: "[*]", Safety.UNSAFE: "[unsafe fix]"}


def closing(report: Report) -> str:
    text = _found(report) if report.findings else _nothing_found(report)
    if report.known:
        text += f" {report.known} more {report.known_where}."
    if report.hidden:
        text += f" {counted(report.hidden, 'note')} hidden."
    text += quiet_notes(report.quiet)
    if report.problems:
        text += f" {counted(len(report.problems), 'problem')} above."
    return text


def mark(finding: Finding) -> str:
    safety = _best(finding)
    return _MARKS.get(safety, "") if safety else ""


def by_hand(finding: Finding) -> list[str]:
    """What mends it, where no edit does."""
    return [f"to fix it: {fix.description}" for fix in finding.fixes if not fix.edits]


def in_cell(finding: Finding) -> list[str]:
    """Where people find it, if the format can name only a line of the file."""
    site = finding.site
    return [f"cell {site.cell}, line {site.line}:"] if site.cell else []


def place_of(site: Site, column: bool = True) -> str:
    """`train.py:12:5`; the byte in a file that has no lines."""
    path = inert_path(site.file)
    if not site.line:
        return f"{path}: byte {site.start:,}" if site.start >= 0 else path
    path += f":cell {site.cell}" if site.cell else ""
    return f"{path}:{site.line}" + (f":{site.column}" if column else "")


def _nothing_found(report: Report) -> str:
    fixed = f" {counted(report.fixed, 'finding')} fixed." if report.fixed else ""
    what = "No errors or warnings" if report.hidden else "No findings"
    if not report.files_checked:
        return f"{what}.{fixed}"
    return f"{what}: {counted(report.files_checked, 'file')} checked.{fixed}"


def _found(report: Report) -> str:
    by_severity = Counter(finding.severity for finding in report.findings)
    parts = [counted(by_severity[each], each.value) for each in Severity if by_severity[each]]
    text = f"Found {counted(len(report.findings), 'finding')} ({', '.join(parts)})"
    text += f" in {counted(report.files_checked, 'file')}."
    if report.fixed:
        text += f" {report.fixed} fixed."
    safety = Counter(_best(finding) for finding in report.findings)
    safe, unsafe = safety[Safety.SAFE], safety[Safety.UNSAFE]
    fix, all_fixes = report.fix_with, f"{report.fix_with} --unsafe-fixes"
    if safe and unsafe:
        return f"{text} {safe} fixable with {fix}, {unsafe} more with {all_fixes}."
    if safe or unsafe:
        text += f" {safe or unsafe} fixable with {fix if safe else all_fixes}."
    return text


def _best(finding: Finding) -> Safety | None:
    """The safety of the fix that would be applied."""
    return finding.fixes[0].safety if finding.fixes else None
