"""What one finding says better than another about the same line is reported once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule

Weigh = Callable[[Finding], Severity]


def own_severity(finding: Finding) -> Severity:
    return finding.severity


def without_explained(
    found: Collection[Finding], rules: Iterable[Rule], weigh: Weigh = own_severity
) -> list[Finding]:
    """The findings, but those of codes that another finding's rule explains at their line. The one
    that stays is as severe as those it stands for, as `weigh` says how severe each is reported. It
    explains none that is heard better, and goes where there is one: a note may not be shown."""
    gone: set[int] = set()
    worse: set[int] = set()
    for each, others in _beside(found, rules):
        heard = [other for other in others if _loudness(other, weigh) > _loudness(each, weigh)]
        gone |= {id(other) for other in others if other not in heard}
        gone |= {id(each)} if heard else set()
        worse |= {id(each)} if any(weigh(other) is Severity.ERROR for other in others) else set()
    left = (each for each in found if id(each) not in gone)
    return [_as_an_error(each, weigh) if id(each) in worse else each for each in left]


def _beside(
    found: Iterable[Finding], rules: Iterable[Rule]
) -> Iterator[tuple[Finding, list[Finding]]]:
    """Each finding of a rule that explains others, with those at its line."""
    explains = {rule.code: frozenset(rule.explains) for rule in rules if rule.explains}
    of_line: dict[tuple[str, int], list[Finding]] = {}
    for each in found:
        of_line.setdefault((each.site.file, each.site.line), []).append(each)
    for line in of_line.values():
        for each in line:
            if each.code in explains:
                yield each, [other for other in line if other.code in explains[each.code]]


def _loudness(finding: Finding, weigh: Weigh) -> int:
    """Notes may be off by default; what became one because of its rule is shown."""
    if finding.severity is Severity.NOTE:
        return 0
    return 1 if weigh(finding) is Severity.NOTE else 2


def _as_an_error(finding: Finding, weigh: Weigh) -> Finding:
    warns = weigh(finding) is Severity.WARNING
    return replace(finding, severity=Severity.ERROR) if warns else finding
