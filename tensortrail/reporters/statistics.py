"""How many findings each rule has."""

from __future__ import annotations

from itertools import groupby

from tensortrail.findings import Finding, Report
from tensortrail.inert import inert
from tensortrail.reporters.summary import closing, mark


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    ordered = sorted(report.findings, key=lambda each: each.code)
    groups = [list(group) for _, group in groupby(ordered, key=lambda each: each.code)]
    groups.sort(key=lambda group: -len(group))
    rows = [_row(group) for group in groups]
    widths = [max((len(row[index]) for row in rows), default=0) for index in range(3)]
    lines = [
        f"{count:>{widths[0]}}  {code:<{widths[1]}}  {name:<{widths[2]}}  {marked}".rstrip()
        for count, code, name, marked in rows
    ]
    return "\n".join([*lines, closing(report)])


def _row(group: list[Finding]) -> tuple[str, str, str, str]:
    marks = {mark(each) for each in group}
    best = next((each for each in ("[*]", "[unsafe fix]") if each in marks), "")
    return str(len(group)), inert(group[0].code), inert(group[0].name), best
