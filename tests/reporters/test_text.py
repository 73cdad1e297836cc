"""What a person reads."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from tensortrail.findings import Safety, Setting, Severity, Site, Step
from tensortrail.reporters import render

from .samples import finding, full_finding, report, site

FULL = """\
error[OFF101] unguarded-deallocate: `model` is moved whatever `offload` says (medium confidence)
 --> a.py:3:5
  |
3 |     park(model)
  |     ^^^^^^^^^^^
note 1: `model` comes from the caller
 --> a.py:1:7
1 | def f(model, offload):
fix: guard it (unsafe: apply with --fix --unsafe-fixes)
  | @@ -3 +3,2 @@
  | -    park(model)
  | +    if offload:
setting: lib offload=False - keeps it in place (compile(...))
seen: guards none
same pattern: 2 other places
 --> a.py:9
 --> a.py:12

Found 1 finding (1 error) in 7 files. 1 fixable with --fix --unsafe-fixes."""


def lines_of(*findings: object) -> list[str]:
    return render("text", report(*findings)).splitlines()  # type: ignore[arg-type]


def test_everything_a_finding_can_say() -> None:
    assert render("text", report(full_finding())) == FULL


def test_many_places_of_one_short_note() -> None:
    notes = [replace(finding(), severity=Severity.NOTE, site=site(line=n)) for n in range(1, 9)]
    shown = render("text", replace(report(*notes), short_notes=True)).splitlines()
    assert [each for each in shown if "-->" in each] == [f"  --> a.py:{n}:5" for n in range(1, 6)]
    assert "      and 3 more" in shown


def test_short_notes_that_name_other_lines_are_one() -> None:
    notes = [
        replace(finding(message=f"as line {n} shows"), severity=Severity.NOTE, site=site(line=n))
        for n in (3, 4)
    ]
    shown = render("text", replace(report(*notes), short_notes=True))
    assert shown.count("note[") == 1
    assert "as another line shows" in shown
    alone = render("text", replace(report(notes[0]), short_notes=True))
    assert "as line 3 shows" in alone


def test_success_is_one_line() -> None:
    assert render("text", report()) == "No findings: 7 files checked."


def test_problems_are_shown_and_counted() -> None:
    assert render("text", report(problems=("sub: cannot be listed",))).splitlines() == [
        "problem: sub: cannot be listed",
        "",
        "No findings: 7 files checked. 1 problem above.",
    ]


@pytest.mark.parametrize(
    ("source", "column", "expected"),
    [
        ("\tpark(model)", 2, "    ^^^^^^^^^^^"),
        ("x = '日本', park(model)", 11, "            ^^^^^^^^^^^"),
        ("x = '\U0001f525', park(model)", 10, "          ^^^^^^^^^^^"),
        ("x = 'e\u0301', park(model)", 11, "         ^^^^^^^^^^^"),
        ("\x1b[1m park(model)", 6, "        ^^^^^^^^^^^"),
    ],
)
def test_the_caret_stands_under_the_code(source: str, column: int, expected: str) -> None:
    assert f"  | {expected}" in lines_of(finding(site=site(3, column, source)))


def test_several_lines() -> None:
    where = Site("a.py", 9, 5, 12, 6, 0, 10, "", "    park(\n        model,\n\n    )  # done")
    assert lines_of(finding(site=where))[2:10] == [
        "   |",
        " 9 |     park(",
        "   |     ^^^^^",
        "10 |         model,",
        "   |         ^^^^^^",
        "11 |",
        "12 |     )  # done",
        "   |     ^",
    ]


def test_many_lines_are_cut_short() -> None:
    source = "\n".join(["park(", *["    model,"] * 20, ")"])
    lines = lines_of(finding(site=Site("a.py", 1, 1, 22, 2, 0, 250, "", source)))
    assert "   | ... 16 more lines" in lines
    assert len(lines) < 20


def test_a_line_wider_than_the_terminal_shows_the_part_that_matters() -> None:
    source = "x = 1;" * 100 + "park(model)" + ";y = 2" * 100
    where = Site("a.py", 3, 601, 3, 612, 600, 611, "", source)
    shown, under = render("text", report(finding(site=where)), width=60).splitlines()[3:5]
    assert len(shown) <= 60
    start = under.index("^")
    assert shown[start : start + under.count("^")] == "park(model)"


def test_the_gutter_fits_every_line_of_the_trail() -> None:
    far = Step(site(12345, 1, "model = build()", "b.py"), "`model` is made here")
    lines = lines_of(finding(trail=(far,)))
    assert "    3 |     park(model)" in lines
    assert "12345 | model = build()" in lines


def test_only_the_place_without_source() -> None:
    assert lines_of(finding(site=Site("a.py", 3)))[1:3] == [" --> a.py:3:1", ""]


@pytest.mark.parametrize(
    ("safety", "how"),
    [(Safety.SAFE, "apply with --fix"), (Safety.DISPLAY, "to be made by hand")],
)
def test_how_a_fix_is_applied(safety: Safety, how: str) -> None:
    (fix,) = full_finding().fixes
    lines = lines_of(finding(fixes=(replace(fix, safety=safety),)))
    assert f"fix: guard it ({how})" in lines


def test_a_run_is_fixed_by_a_command_of_its_own() -> None:
    of_run = replace(report(full_finding()), fix_with="tensortrail fix")
    text = render("text", of_run)
    assert "fix: guard it (unsafe: apply with tensortrail fix --unsafe-fixes)" in text
    assert text.endswith("1 fixable with tensortrail fix --unsafe-fixes.")


def test_siblings_are_capped() -> None:
    lines = lines_of(finding(siblings=tuple(site(line) for line in range(10, 18))))
    assert "same pattern: 8 other places" in lines
    assert " --> a.py:14" in lines
    assert " --> a.py:15" not in lines
    assert "  | ... and 3 more" in lines


def test_colour_is_only_colour() -> None:
    coloured = render("text", report(full_finding()), color=True)
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == FULL


def test_plain_text_is_ascii_and_needs_no_rich() -> None:
    program = (
        "import sys; from tests.reporters.samples import *\n"
        "from tensortrail.reporters import render\n"
        "print(render('text', report(full_finding()))); assert 'rich' not in sys.modules"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert shown.stdout.decode("ascii").splitlines() == FULL.splitlines()


def test_severities_are_counted() -> None:
    several = [finding(severity=each) for each in (Severity.ERROR, Severity.NOTE, Severity.NOTE)]
    assert "Found 3 findings (1 error, 2 notes) in 7 files." in lines_of(*several)


def test_safe_and_unsafe_fixes_are_counted_apart() -> None:
    unsafe = full_finding()
    safe = replace(unsafe, fixes=(replace(unsafe.fixes[0], safety=Safety.SAFE),))
    last = lines_of(safe, unsafe, unsafe, finding())[-1]
    assert last.endswith("1 fixable with --fix, 2 more with --fix --unsafe-fixes.")


def test_what_was_fixed_is_told() -> None:
    done = replace(report(), fixed=2)
    assert render("text", done) == "No findings: 7 files checked. 2 findings fixed."


def test_a_setting_of_a_call_says_where_it_is() -> None:
    given = Setting("lib", "size", "7", "less", "save", call="save", at=Site("b.py", 4))
    shown = render("text", report(finding(settings=(given,))))
    assert "setting: lib size=7 - less (save, b.py:4)" in shown


def test_what_many_lines_share_is_told_once() -> None:
    at = [replace(finding(), site=site(line=number)) for number in (3, 4, 5, 9)]
    shown = lines_of(*at)
    assert sum(line.startswith("error[") for line in shown) == 1
    assert shown[-3] == "the same: 3 more findings say this of lines 4-5, 9"
    assert shown[-1].startswith("Found 4 findings")
    assert sum(line.startswith("error[") for line in lines_of(*at[:2])) == 2
    other = replace(at[3], message="another cause")
    assert sum(line.startswith("error[") for line in lines_of(*at[:3], other)) == 2
