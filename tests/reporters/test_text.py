"""What a person reads."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity, Site
from tensortrail.reporters import render

from .samples import finding, full_finding, report, site

FULL = """\
error[OFF101] unguarded-deallocate: `model` is moved whatever `offload` says (medium confidence)
  --> a.py:3:5
   |
 3 |     park(model)
   |     ^^^^^^^^^^^
  1. `model` comes from the caller
     a.py:1  def f(model, offload):
  fix: guard it (unsafe: apply with --fix --unsafe-fixes)
    @@ -3 +3,2 @@
    -    park(model)
    +    if offload:
  setting: lib: offload=False, compile(...)
    keeps it in place
  same shape at: a.py:9, a.py:12

Found 1 finding (1 error) in 7 files. 1 fixable with --fix --unsafe-fixes."""


def test_everything_a_finding_can_say() -> None:
    assert render("text", report(full_finding())) == FULL


def test_success_is_one_line() -> None:
    assert render("text", report()) == "All clear: 7 files checked."


def test_problems_are_shown() -> None:
    shown = render("text", report(problems=("sub: cannot be listed",)))
    assert shown.splitlines()[0] == "problem: sub: cannot be listed"


@pytest.mark.parametrize(
    ("source", "column", "expected"),
    [
        ("\tpark(model)", 2, "    ^^^^^^^^^^^"),
        ("x = '日本', park(model)", 11, "            ^^^^^^^^^^^"),
        ("x = '\U0001f525', park(model)", 10, "          ^^^^^^^^^^^"),
        ("x = 'e\u0301', park(model)", 11, "         ^^^^^^^^^^^"),
    ],
)
def test_the_caret_stands_under_the_code(source: str, column: int, expected: str) -> None:
    shown = render("text", report(finding(site=site(3, column, source))))
    assert f"   | {expected}" in shown.splitlines()


def test_several_lines() -> None:
    where = Site("a.py", 9, 5, 11, 6, 0, 10, "", "    park(\n        model\n    )")
    lines = render("text", report(finding(site=where))).splitlines()
    assert lines[3:9] == [
        "  9 |     park(",
        "    |     ^^^^^",
        " 10 |         model",
        "    |         ^^^^^",
        " 11 |     )",
        "    |     ^",
    ]


def test_only_the_place_without_source() -> None:
    lines = render("text", report(finding(site=Site("a.py", 3)))).splitlines()
    assert lines[1:3] == ["  --> a.py:3:1", ""]


def test_colour_is_only_colour() -> None:
    import re

    coloured = render("text", report(full_finding()), color=True)
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == FULL


def test_severities_are_counted() -> None:
    several = [finding(severity=each) for each in (Severity.ERROR, Severity.NOTE, Severity.NOTE)]
    assert "Found 3 findings (1 error, 2 notes)" in render("text", report(*several))
