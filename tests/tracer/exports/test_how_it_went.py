"""The head of a report says what a run failed with, whether or not a rule has found something."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("torch")

from tensortrail.rules.timeline import Gone
from tensortrail.tracer.exports.how_it_went import how_it_went
from tensortrail.tracer.reading.timeline import RunTimeline
from tests.rules.recorded import record


def test_a_run_that_ended_well_has_nothing_to_say(tmp_path: Path) -> None:
    _, timeline, _ = record(tmp_path, "import torch\ntorch.ones(3)\n")
    assert how_it_went(timeline) == []


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ([("main", "failed: ValueError")], ["rehearsed on cuda", "failed: ValueError"]),
        ([("main", "killed")], ["rehearsed on cuda"]),
        ([("rank 1", "failed: ValueError"), ("rank 0", "exit code 1")],
         ["failed: ValueError (rank 1)", "1 more failed after it"]),
    ],
)  # fmt: skip
def test_the_first_that_failed_is_named(gone: list[tuple[str, str]], told: list[str]) -> None:
    rehearsed = {"rehearse": "cuda"} if told[0].startswith("rehearsed") else {}
    parts = [SimpleNamespace(header=rehearsed) for _ in gone]
    lost = [Gone(process, how, 1.0) for process, how in gone]
    timeline: Any = SimpleNamespace(parts=parts, gone=lambda: lost)
    assert how_it_went(cast("RunTimeline", timeline)) == told
