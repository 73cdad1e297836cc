"""One line a finding."""

from __future__ import annotations

from dataclasses import replace

from tensortrail.findings import Safety
from tensortrail.reporters import render

from .samples import finding, full_finding, report

SHOWN = """\
a.py:3:5: OFF101 [error] `model` is moved whatever `offload` says [*]
a.py:3:5: OFF101 [error] `model` is moved whatever `offload` says [unsafe fix]
a.py:3:5: OFF101 [error] `model` is moved whatever `offload` says
problem: sub: cannot be listed
Found 3 findings (3 errors) in 7 files. 1 fixable with --fix, 1 more with --fix --unsafe-fixes. \
1 problem above."""


def test_concise() -> None:
    unsafe = full_finding()
    safe = replace(unsafe, fixes=(replace(unsafe.fixes[0], safety=Safety.SAFE),))
    given = report(safe, unsafe, finding(), problems=("sub: cannot be listed",))
    assert render("concise", given) == SHOWN


def test_success_is_one_line() -> None:
    assert render("concise", report()) == "No findings: 7 files checked."
