"""One line a finding."""

from __future__ import annotations

from tensortrail.findings import Report, Safety
from tensortrail.reporters.inert import inert
from tensortrail.reporters.summary import best, closing

_MARKS = {Safety.SAFE: " [*]", Safety.UNSAFE: " [unsafe fix]"}


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    lines = []
    for finding in report.findings:
        site = finding.site
        mark = _MARKS.get(best(finding) or Safety.DISPLAY, "")
        place = f"{inert(site.file)}:{site.line}:{site.column}"
        lines.append(
            f"{place}: {finding.code} {finding.severity.value}{mark} {inert(finding.message)}"
        )
    problems = [f"problem: {inert(each)}" for each in report.problems]
    return "\n".join([*lines, *problems, closing(report)])
