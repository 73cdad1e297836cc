"""One line a finding."""

from __future__ import annotations

from tensortrail.findings import Finding, Report
from tensortrail.inert import headline, inert
from tensortrail.reporters.summary import closing, mark, place_of


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    lines = [_line(finding) for finding in report.findings]
    problems = [f"problem: {inert(each)}" for each in report.problems]
    return "\n".join([*lines, *problems, *map(inert, report.notes), closing(report)])


def _line(finding: Finding) -> str:
    site = finding.site
    place = place_of(site)
    what = f"{inert(finding.code)} [{finding.severity.value}] {headline(finding.message)}"
    return f"{place}: {what} {mark(finding)}".rstrip()
