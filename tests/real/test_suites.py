"""Tests of other projects end as without a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.real.suites import SUITES, NotHere, run, tests_of

pytestmark = [pytest.mark.real, pytest.mark.complete]
FEWEST = {"accelerate": 50, "compressed-tensors": 20, "safetensors": 20}
"""Tests that run to an end; fewer, and the suite was not really there."""


@pytest.mark.parametrize("project", FEWEST)
def test_outcomes_are_those_of_a_plain_run(project: str, tmp_path: Path) -> None:
    suite = SUITES[project]
    try:
        tests = tests_of(suite)
    except NotHere as reason:
        pytest.skip(str(reason))
    plain = {name: outcome.word for name, outcome in run(suite, tests).items()}
    trail = ("--tensortrail", "--tensortrail-directory", str(tmp_path / "run"))
    recorded = {name: outcome.word for name, outcome in run(suite, tests, *trail).items()}
    assert recorded == plain
    assert sum(word == "passed" for word in plain.values()) >= FEWEST[project]
    assert any((tmp_path / "run").iterdir())
