"""What a user reads when a program has failed, and that the program runs with the patch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.real.programs.cases import CASES, HERE, Case, again, patch, traced
from tests.real.programs.mentions import strangers
from tests.real.programs.table import PAGE, row

pytestmark = pytest.mark.long

PARAMETERS = [
    pytest.param(case, id=case.name, marks=[] if case.quick else [pytest.mark.complete])
    for case in CASES
]


@pytest.mark.real
@pytest.mark.parametrize("case", PARAMETERS)
def test_the_end_says_what_a_user_needs(case: Case, tmp_path: Path) -> None:
    for library in case.needs:
        pytest.importorskip(library)
    ended = traced(case, tmp_path)
    missing = [word for word in case.words if word not in ended.told]
    assert not missing, ended.told
    assert case.words[0] in " ".join(ended.found), "the last lines name the finding"
    assert not strangers(ended), "all of it is about this program"
    assert ("patch: tensortrail fix" in ended.told) is case.patched, ended.told
    if case.patched:
        said = patch(case, tmp_path)
        after = again(case, tmp_path, "patched")
        assert after.code == 0, f"{said}\n{after.told}"
        assert case.words[0] not in " ".join(after.found), after.told
    current = row(case, ended, runs_now=case.patched)
    assert current in PAGE.read_text(encoding="utf-8"), "python -m tests.real.programs.table"


def test_the_page_has_every_program() -> None:
    named = re.findall(r"^\| `(\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert named == [case.name for case in CASES]
    assert sorted(named) == sorted(each.stem for each in HERE.glob("*.py"))
