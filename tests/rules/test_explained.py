"""One finding that says more than another about a line stands for both."""

from __future__ import annotations

import pytest

from tensortrail.findings import Confidence, Finding, Severity, Site
from tensortrail.rules import all_rules
from tensortrail.rules.explained import without_explained

RULES = [all_rules()[code]() for code in ("DEV532", "DEV534")]


def finding(code: str, severity: Severity, line: int = 3) -> Finding:
    return Finding(code, "a", "m", severity, Confidence.HIGH, Site("a.py", line))


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        (Severity.WARNING, Severity.WARNING, ["DEV532"]),
        (Severity.WARNING, Severity.NOTE, ["DEV532"]),
        (Severity.NOTE, Severity.NOTE, ["DEV532"]),
        (Severity.NOTE, Severity.WARNING, ["DEV534"]),
    ],
)
def test_a_note_stands_for_notes_only(first: Severity, second: Severity, left: list[str]) -> None:
    both = [finding("DEV532", first), finding("DEV534", second)]
    assert [each.code for each in without_explained(both, RULES)] == left


def test_another_line_is_not_explained() -> None:
    apart = [finding("DEV532", Severity.WARNING), finding("DEV534", Severity.WARNING, line=4)]
    assert without_explained(apart, RULES) == apart


def test_what_stays_is_as_severe_as_what_it_stands_for() -> None:
    both = [finding("DEV532", Severity.WARNING), finding("DEV534", Severity.ERROR)]
    (left,) = without_explained(both, RULES)
    assert (left.code, left.severity) == ("DEV532", Severity.ERROR)


def test_in_code_an_error_of_a_rule_that_reports_notes_raises_nothing() -> None:
    rules = [all_rules()[code]() for code in ("DEV521", "NEW305")]
    both = [finding("DEV521", Severity.WARNING), finding("NEW305", Severity.ERROR)]
    (in_code,) = without_explained(both, rules, in_code=True)
    (in_run,) = without_explained(both, rules)
    assert (in_code.code, in_code.severity) == ("DEV521", Severity.WARNING)
    assert in_run.severity is Severity.ERROR
