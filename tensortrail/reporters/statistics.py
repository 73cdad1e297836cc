"""How many findings each rule has."""

from __future__ import annotations

from collections import Counter

from tensortrail.findings import Report, Safety
from tensortrail.reporters.summary import best, closing

_MARKS = {Safety.SAFE: "[*]", Safety.UNSAFE: "[unsafe fix]"}


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    counts = Counter((each.code, each.name) for each in report.findings)
    marks = {each.code: _MARKS.get(best(each) or Safety.DISPLAY, "") for each in report.findings}
    rows = [
        f"{count:>6}  {code}  {name}  {marks[code]}".rstrip()
        for (code, name), count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]
    return "\n".join([*rows, closing(report)])
