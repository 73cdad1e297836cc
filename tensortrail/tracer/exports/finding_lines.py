"""A finding in one line: how bad it is, its code, its place, and what it says."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tensortrail.findings import Finding, Severity
from tensortrail.inert import inert
from tensortrail.tracer.exports.shortened import first_of
from tensortrail.tracer.reading.sentences import place

TOLD = "is explained above"
STYLES = {"error": "31;1", "warning": "33;1", "note": "36"}


class Line(NamedTuple):
    """As plain text, which processes can tell each other."""

    severity: str
    code: str
    where: str
    message: str
    change: str = ""
    """What mends it; said where no explanation says it already."""

    @property
    def is_error(self) -> bool:
        return self.severity == Severity.ERROR.value

    def text(self, color: bool) -> str:
        word = f"{self.severity} {self.code}"
        if color:
            word = f"\x1b[{STYLES.get(self.severity, '0')}m{word}\x1b[0m"
        change = f"\n    change  {inert(self.change)}" if self.change else ""
        return f"{word}  {inert(self.where)}  {inert(self.message)}{change}"


def lines_of(
    findings: Iterable[Finding], changes: bool = False, told: Iterable[Finding] = ()
) -> list[Line]:
    """The worst first. Of those that were told already only which they are."""
    known = {_key(each) for each in told}
    return in_order(
        Line(
            each.severity.value,
            each.code,
            place(each.site),
            TOLD if _key(each) in known else each.message,
            _change(each) if changes and _key(each) not in known else "",
        )
        for each in findings
    )


def _key(finding: Finding) -> tuple[str, str, int]:
    return finding.code, os.path.abspath(finding.site.file), finding.site.line


def _change(finding: Finding) -> str:
    return finding.fixes[0].description if finding.fixes else ""


def in_order(lines: Iterable[Line]) -> list[Line]:
    return sorted(dict.fromkeys(lines), key=lambda each: Severity(each.severity).rank)


def shown(lines: Sequence[Line], most: int, color: bool = False) -> Iterator[str]:
    if not lines:
        yield "  no findings"
    yield from first_of([each.text(color) for each in lines], most, "finding")
