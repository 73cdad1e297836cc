"""Which settings a run calls for: each once, one for each finding, none that contradict."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("libcst")

from tensortrail.analyzer.fixing.suggestions import plan, suggested
from tensortrail.findings import Confidence, Finding, Setting, Severity, Site

SOURCE = "save(a, size=1)\nsave(b, size=2)\nload()\n"


def finding(line: int, *settings: Setting, code: str = "SHD402") -> Finding:
    site = Site("a.py", line)
    return Finding(code, "n", "m", Severity.ERROR, Confidence.HIGH, site, settings=settings)


def size(value: int, line: int = 1) -> Setting:
    return Setting("lib", "size", str(value), "why", "save", call="save", at=Site("a.py", line))


FORMAT = Setting("lib", "form", "False", "why", "save", call="save", at=Site("a.py", 1))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(SOURCE)


def changed(*findings: Finding) -> str:
    ((path, done),) = plan(findings, lambda path: "").files
    assert path == "a.py"
    return done.after.decode()


def test_the_same_setting_of_two_findings_is_one() -> None:
    (only,) = suggested([finding(1, size(7)), finding(3, size(7), code="SHD404")])
    assert [each.code for each in only.findings] == ["SHD402", "SHD404"]
    assert changed(*only.findings) == SOURCE.replace("size=1", "size=7")


def test_the_first_of_several_settings_is_taken_and_the_others_are_told() -> None:
    (only,) = suggested([finding(1, size(7), FORMAT)])
    assert (only.setting, only.others) == (size(7), (FORMAT,))


def test_a_setting_that_another_finding_needs_is_enough() -> None:
    (only,) = suggested([finding(1, size(7), FORMAT), finding(2, FORMAT)])
    assert (only.setting, only.others) == (FORMAT, (size(7),))
    assert len(only.findings) == 2


def test_what_contradicts_is_told_and_not_done() -> None:
    wanted = plan([finding(1, size(7)), finding(2, size(8)), finding(3, size(9, 2))], lambda _: "")
    assert [each.left for each in wanted.left] == [
        "this call is asked for size=7 and for size=8"
    ] * 2
    ((_, done),) = wanted.files
    assert done.after.decode() == SOURCE.replace("size=2", "size=9")


@pytest.mark.parametrize(
    ("by_hand", "why"),
    [
        (Setting("lib", "size", "7", "why", "somewhere"), "it is not an argument of a call"),
        (Setting("lib", "SIZE", "7", "why", "environment"), "it is read from the environment"),
        (
            Setting("lib", "size", "7", "why", "save", call="save"),
            "the run does not know the call that takes it",
        ),
    ],
)
def test_a_setting_that_is_not_of_the_source_is_left(by_hand: Setting, why: str) -> None:
    wanted = plan([finding(1, by_hand)], lambda _: "")
    assert [each.left for each in wanted.left] == [why]
    assert not wanted.files
    assert wanted.diff == ""


def test_a_setting_that_is_there_already_is_left() -> None:
    wanted = plan([finding(1, size(1))], lambda _: "")
    assert [each.left for each in wanted.left] == ["the source says so already"]
    assert not wanted.files


def test_a_file_that_must_not_be_touched() -> None:
    wanted = plan([finding(1, size(7))], lambda path: f"{path} is sacred")
    assert [each.left for each in wanted.left] == ["a.py is sacred"]


def test_a_name_that_no_diff_can_hold() -> None:
    odd = Setting("lib", "size", "7", "", call="save", at=Site("a\n+++ b.py", 1))
    wanted = plan([finding(1, odd)], lambda path: "")
    assert [each.left for each in wanted.left] == ["no diff can hold the name of the file"]


def test_findings_without_settings_call_for_nothing() -> None:
    assert plan([finding(1)], lambda _: "").suggestions == ()
