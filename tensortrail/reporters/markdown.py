"""Markdown for the summary of a job, or a comment: a table, the worst first."""

from __future__ import annotations

import re

from tensortrail.findings import Finding, Report
from tensortrail.inert import headline, inert
from tensortrail.reporters.summary import closing, mark, place_of

_MOST = 200
"""Rows: a summary may hold a megabyte."""
_LONGEST = 500
_SPECIAL = re.compile(r"([\\*_\[\]<>|~#@&])")
_CODE = re.compile(r"(`[^`\n]+`)")


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    lines = [f"**tensortrail**: {_escaped(closing(report))}"]
    if report.findings:
        lines += ["", "| | where | what | |", "| --- | --- | --- | --- |"]
        worst = sorted(report.findings, key=lambda each: each.worst_first)
        lines += [_row(each) for each in worst[:_MOST]]
        if worst[_MOST:]:
            lines += ["", f"and {len(worst) - _MOST} more"]
    told = [*report.problems, *report.notes]
    lines += ["", *(f"- {_escaped(inert(each))}" for each in told)] if told else []
    return "\n".join(lines)


def _row(finding: Finding) -> str:
    what = headline(finding.message)
    what = what if len(what) <= _LONGEST else what[:_LONGEST] + "..."
    fix = _escaped(mark(finding))
    rule = f"{_escaped(finding.code)} {_escaped(finding.name)}"
    place = _escaped(place_of(finding.site))
    return f"| {finding.severity.value} | {place} | **{rule}**: {_message(what)} | {fix} |"


def _message(text: str) -> str:
    """Code stays code, where a cell of a table can hold it."""
    return "".join(
        part.replace("|", "\\|") if _CODE.fullmatch(part) else _escaped(part)
        for part in _CODE.split(text)
    )


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text).replace("`", "\\`")
