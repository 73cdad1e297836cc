"""A distributed checkpoint that two real ranks wrote on gloo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.doctor.checkpoint.examine import examine
from tests.doctor.checkpoint.written import copy

pytestmark = [pytest.mark.real, pytest.mark.complete]
PROGRAM = """
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
state = {
    "rows": distribute_tensor(torch.arange(40.0).reshape(10, 4), mesh, [Shard(0)]),
    "columns": distribute_tensor(torch.arange(28.0).reshape(4, 7), mesh, [Shard(1)]),
    "both": distribute_tensor(torch.ones(3, 3), mesh, [Replicate()]),
    "plain": torch.zeros(5),
    "step": 3,
}
dcp.save(state, checkpoint_id="saved")
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    (folder / "prog.py").write_text(PROGRAM)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    subprocess.run([*launcher, "--standalone", "prog.py"], cwd=folder, check=True, timeout=180)
    return folder / "saved"


def test_it_is_fine(saved: Path) -> None:
    found = examine(str(saved))
    assert not [(each.code, each.message) for each in found.findings]
    assert not found.problems
    told = found.checkpoint.distributed
    assert told is not None
    assert {name: len(each.pieces) for name, each in told.tensors.items()} == {
        "rows": 2, "columns": 2, "both": 1, "plain": 1,
    }  # fmt: skip
    assert len(found.checkpoint.sizes) == 2


def test_the_file_of_one_rank_is_missing(saved: Path, tmp_path: Path) -> None:
    folder = copy(saved, tmp_path / "damaged")
    (folder / "__1_0.distcp").unlink()
    (finding,) = examine(str(folder)).findings
    assert finding.code == "CKP843"
    assert "'__1_0.distcp' is not there" in finding.message
