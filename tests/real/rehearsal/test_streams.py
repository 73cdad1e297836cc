"""Libraries that work on several streams: what they order, and what they forgot to order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from tensortrail.rules import all_rules  # noqa: E402
from tensortrail.tracer.reading.findings_of_run import findings  # noqa: E402
from tensortrail.tracer.reading.timeline import open_run  # noqa: E402
from tests.parts import first_of  # noqa: E402
from tests.real.rehearsal.test_distributed import rehearsed  # noqa: E402
from tests.rules.recorded import watched  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]

GROUPS = """\
import torch
from diffusers import UNet2DModel
from diffusers.hooks import apply_group_offloading, group_offloading

def onto_the_wrong_stream(self, tensor, source, default_stream):
    tensor.data = source.to(self.onload_device, non_blocking=self.non_blocking)
    tensor.data.record_stream(torch.cuda.current_stream())

if WRONG:
    group_offloading.ModuleGroup._transfer_tensor_to_device = onto_the_wrong_stream
model = UNet2DModel(
    sample_size=8, in_channels=3, out_channels=3, block_out_channels=(8, 16), norm_num_groups=4,
    layers_per_block=1, attention_head_dim=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
).eval()
apply_group_offloading(
    model, onload_device=torch.device("cuda"), offload_device=torch.device("cpu"),
    use_stream=True, **OPTIONS
)
x = torch.randn(1, 3, 8, 8, device="cuda")
with torch.no_grad():
    for step in range(3):
        x = model(x, torch.tensor([step], device="cuda")).sample  # MARK
"""
SHARDED = """\
import torch
from torch import distributed, nn
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + checkpoint(self.inner, x, use_reentrant=REENTRANT)

    def inner(self, x):
        return self.down(self.up(x).relu())

distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
model = nn.Sequential(Block(), Block(), nn.Linear(8, 1))
for part in (*model, model):
    fully_shard(part, offload_policy=CPUOffloadPolicy(), **OPTIONS)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    model.set_requires_gradient_sync(step % 2 == 1)
    model(torch.randn(4, 8, device="cuda", requires_grad=True)).sum().backward()
    if step % 2 == 1:
        optimizer.step()
        optimizer.zero_grad()
distributed.destroy_process_group()
"""
LEAVES = {"offload_type": "leaf_level"}


@pytest.mark.parametrize("options", [
    LEAVES, {**LEAVES, "record_stream": True}, {**LEAVES, "low_cpu_mem_usage": True},
    {"offload_type": "block_level", "num_blocks_per_group": 1, "record_stream": True},
], ids=str)  # fmt: skip
def test_groups_of_diffusers(options: dict[str, Any], tmp_path: Path) -> None:
    program = GROUPS.replace("WRONG", "False").replace("OPTIONS", repr(options))
    assert watched(tmp_path, program, "XFR603", rehearse="cuda").found == ()


def test_groups_as_diffusers_once_recorded_them(tmp_path: Path) -> None:
    """Until December 2025 it named the stream that copies, not the one that computes."""
    options = {**LEAVES, "record_stream": True}
    program = GROUPS.replace("WRONG", "True").replace("OPTIONS", repr(options))
    seen = watched(tmp_path, program.replace("MARK", "flagged"), "XFR603", rehearse="cuda")
    assert "with the default stream of cuda:0" in seen.only.message


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("options", ["{}", "{'mp_policy': MixedPrecisionPolicy(torch.bfloat16)}"])
def test_sharded_and_kept_on_the_cpu(options: str, reentrant: bool, tmp_path: Path) -> None:
    """Streams are entered in the backward pass first, where there is nothing to gather."""
    program = SHARDED.replace("OPTIONS", options).replace("REENTRANT", str(reentrant))
    assert watched(tmp_path, program, "XFR603", rehearse="cuda").found == ()


@pytest.mark.complete
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
@pytest.mark.parametrize("way", first_of(["fsdp-unordered", "fsdp"]))
def test_sharded_training(way: str, tmp_path: Path) -> None:
    told = rehearsed(tmp_path, way, "gloo")
    assert all("agrees with the CPU" in each for each in told), told
    for rank in range(2):
        judged = findings(open_run(tmp_path / f"rank-{rank}"), [all_rules()["XFR603"]()])
        assert bool(judged.findings) == (way == "fsdp-unordered")
