"""FSDP frees and gathers memory on purpose, and two ranks train: nothing is read unwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.tracer.ranks import launched, reported

PROGRAM = """\
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
net = lambda: torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
def train(model):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(2, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
train(DistributedDataParallel(net()))
for original in (True, False):
    first = FullyShardedDataParallel(net(), use_orig_params=original, device_id=torch.device("cpu"))
    train(first)
    first.state_dict()
second = net()
for layer in (*second, second):
    fully_shard(layer)
train(second)
dcp.save(second.state_dict(), checkpoint_id="saved")
with torch.device("meta"):
    third = net()
for layer in (*third, third):
    fully_shard(layer)
third.to_empty(device="cpu")
{load}
train(third)
dist.destroy_process_group()
"""
LOAD = "state = third.state_dict(); dcp.load(state, checkpoint_id='saved')"


@pytest.mark.complete
@pytest.mark.parametrize("load", [LOAD, "forgotten = True"], ids=["loaded", "forgotten"])
def test_two_ranks(tmp_path: Path, load: str) -> None:
    done = launched(tmp_path, PROGRAM.format(load=load))
    assert done.returncode == 0, done.stderr[-2000:]
    assert ("NEW306" in reported(tmp_path)) == (load != LOAD)
