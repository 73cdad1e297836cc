"""How many findings each rule has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensortrail.reporters import render

from .samples import finding, full_finding, report

SHOWN = """\
11  STO203  storage-size-test
 2  OFF101  unguarded-deallocate  [unsafe fix]
Found 13 findings (13 errors) in 7 files. 1 fixable with --fix --unsafe-fixes."""


def test_statistics() -> None:
    other = replace(finding(), code="STO203", name="storage-size-test")
    assert render("statistics", report(full_finding(), finding(), *[other] * 11)) == SHOWN


def test_no_findings() -> None:
    assert render("statistics", report()) == "No findings: 7 files checked."


def test_only_formats_are_formats() -> None:
    with pytest.raises(ValueError, match="no output format 'inert'; there are text, concise"):
        render("inert", report())
