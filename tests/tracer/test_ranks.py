"""Two ranks of one run: the merged report says which of them misplaced a tensor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.rules import Did
from tensortrail.tracer.judge import findings
from tensortrail.tracer.timeline import open_run

PROGRAM = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.Linear(4, 4)
if dist.get_rank() == 1:
    model.to("meta")
torch.nn.functional.linear(torch.ones(2, 4), model.weight)
dist.destroy_process_group()
"""


def test_the_rank_is_named(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command = [*launcher, "--standalone", "-m", "tensortrail", "trace", "prog.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    timeline = open_run(tmp_path / ".tensortrail")
    assert [process.label for process in timeline.processes] == ["rank 0", "rank 1"]
    assert {event.process for event in timeline.events(Did.MOVE)} == {"rank 1"}
    (finding,) = findings(timeline).findings
    assert (finding.code, finding.site.line) == ("DEV502", 7)
    assert finding.evidence["process"] == "rank 1"
    assert any(step.site.line == 6 for step in finding.trail)
