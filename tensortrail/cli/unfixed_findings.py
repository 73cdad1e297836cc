"""Findings that a fix leaves are named, each with what a person can do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tensortrail.analyzer.choosing.own_findings import UNREADABLE
from tensortrail.findings import Finding, Safety
from tensortrail.reporters.summary import place_of

MOST_SHOWN = 10


def named(left: Sequence[Finding], why: Callable[[Finding], str]) -> Iterator[str]:
    for each in left[:MOST_SHOWN]:
        yield f"{each.code} at {place_of(each.site, column=False)}: {why(each)}"
    if left[MOST_SHOWN:]:
        yield f"and {len(left) - MOST_SHOWN} more"


def without_patch(finding: Finding) -> str:
    by_hand = next(iter(finding.fixes), None)
    if by_hand is not None:
        return f"no patch; {by_hand.description}"
    return f"no patch; `tensortrail explain {finding.code}` says what helps"


def unfixed(unsafe: bool) -> Callable[[Finding], str]:
    """Why `check --fix` leaves a finding."""

    def why(finding: Finding) -> str:
        if finding.code == UNREADABLE:
            return finding.message
        edited = [each for each in finding.fixes if each.edits]
        if edited and not unsafe and all(each.safety is not Safety.SAFE for each in edited):
            return "its patch needs --unsafe-fixes"
        if edited:
            return "its patch does not fit beside the others: check again, then fix it"
        return without_patch(finding)

    return why
