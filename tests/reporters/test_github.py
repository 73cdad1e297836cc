"""Workflow commands."""

from __future__ import annotations

from tensortrail.findings import Severity, Site
from tensortrail.reporters import render

from .samples import finding, full_finding, report, site


def first_line(*findings: object) -> str:
    return render("github", report(*findings)).split("\n")[0]  # type: ignore[arg-type]


def test_a_command() -> None:
    assert first_line(finding()) == (
        "::error file=a.py,line=3,endLine=3,title=OFF101 unguarded-deallocate,col=5,endColumn=16"
        "::`model` is moved whatever `offload` says"
    )


def test_settings_are_named() -> None:
    assert first_line(full_finding()).endswith(
        " whatever `offload` says%0Asetting: lib offload=False - keeps it in place"
    )


def test_levels() -> None:
    assert first_line(finding(severity=Severity.WARNING)).startswith("::warning ")
    assert first_line(finding(severity=Severity.NOTE)).startswith("::notice ")


def test_columns_only_within_one_line() -> None:
    assert "col" not in first_line(finding(site=Site("a.py", 3, 5, 4, 2, 0, 9)))
    assert "col" not in first_line(finding(site=Site("a.py", 3)))


def test_escapes() -> None:
    hostile = finding(message="50%\n::error::x\r", site=site(file="a,b:c%.py"))
    lines = render("github", report(hostile, problems=("p\n::error::q",))).split("\n")
    assert len(lines) == 3
    assert "file=a%2Cb%3Ac%25.py" in lines[0]
    assert lines[0].endswith("::50%25%0A::error::x\\x0d")
    assert lines[1] == "::warning title=tensortrail::p%0A::error::q"


def test_a_message_opens_no_property() -> None:
    assert "title=OFF101 x%2Cfile=y%3A%3Az," in first_line(finding(name="x,file=y::z"))
