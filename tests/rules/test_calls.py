"""What rules say about calls that a run has seen."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Site
from tensortrail.rules.shared.calls import carrier, gives, quoted
from tests.rules.recorded import record

SOURCE = "import torch\nfirst = torch.ones(2)\npair = torch.ones(2), torch.ones(3)\n"


def test_the_call_that_carries_a_setting(tmp_path: Path) -> None:
    program, timeline, _ = record(tmp_path, SOURCE)
    found = carrier(timeline, Site(str(program), 2), "ones")
    assert found is not None
    assert found.source == "torch.ones(2)"
    assert carrier(timeline, Site(str(program), 2), "zeros") is None
    assert carrier(timeline, Site(str(program), 3), "ones") is None  # which one?
    assert carrier(timeline, None, "ones") is None


def test_in_a_changed_source_the_line_is_all_that_is_known(tmp_path: Path) -> None:
    program, timeline, _ = record(tmp_path, SOURCE)
    program.write_text(f"# one line more\n{SOURCE}")
    line = Site(str(program), 2)
    assert carrier(timeline, line, "ones") == line


@pytest.mark.parametrize(
    ("source", "given"),
    [("f(a=1)", True), ("f(\n  a=1,\n)", True), ("f(b=1)", False), ("f(a)", False), ("f(", False)],
)
def test_arguments_that_are_given(source: str, given: bool) -> None:
    assert gives(Site("a.py", 1, source=source), "a") is given


@pytest.mark.parametrize("text", ["cuda:0", '" + evil() + "', "\\", "é\n", "\ud800"])
def test_strings_stay_strings(text: str) -> None:
    assert ast.literal_eval(quoted(text)) == text
