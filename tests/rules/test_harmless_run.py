"""What people do every day, recorded: no rule has anything to say."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.tracer.reading.findings_of_run import findings
from tests.rules.recorded import record

MODEL = """\
import copy
import torch
import torch.nn.functional as F
from torch import nn

class Block(nn.Module):
    def __init__(self, n=32):
        super().__init__()
        self.attention = nn.MultiheadAttention(n, 4, batch_first=True)
        self.norm = nn.LayerNorm(n)
        self.mlp = nn.Sequential(nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n))
        self.register_buffer("scale", torch.ones(n), persistent=False)
    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(x) * self.scale
    def reset_parameters(self):
        nn.init.ones_(self.scale)

class Model(nn.Module):
    def __init__(self, words=50, n=32):
        super().__init__()
        self.embed = nn.Embedding(words, n)
        self.blocks = nn.ModuleList(Block(n) for _ in range(2))
        self.head = nn.Linear(n, words, bias=False)
        self.head.weight = self.embed.weight
    def forward(self, ids, run=lambda block, x: block(x)):
        x = self.embed(ids)
        for block in self.blocks:
            x = run(block, x)
        return self.head(x)

def fill(model):
    for each in model.modules():
        if isinstance(each, nn.MultiheadAttention):
            each._reset_parameters()
        elif hasattr(each, "reset_parameters"):
            each.reset_parameters()

ids = torch.randint(0, 50, (2, 8))
model = Model()
"""
TRAINING = """\
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset
optimizer, average = torch.optim.AdamW(model.parameters()), copy.deepcopy(model)
for step, (batch,) in enumerate(DataLoader(TensorDataset(torch.cat([ids] * 4)), batch_size=4)):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch, lambda block, x: checkpoint(block, x, use_reentrant=False))
    F.cross_entropy(logits.float().flatten(0, 1), batch.flatten()).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for one, other in zip(average.parameters(), model.parameters()):
            one.lerp_(other, 0.1)
host = {name: each.detach().to("cpu", copy=True) for name, each in model.state_dict().items()}
model.double().half().float()
"""
FILES = """\
from safetensors.torch import load_file, save_file, save_model
optimizer = torch.optim.AdamW(model.parameters())
path = folder + "/model.pt"
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
state = torch.load(path, mmap=True)
with torch.device("meta"):
    other = Model()
other.load_state_dict(state["model"], assign=True)
for block in other.blocks:
    block.scale = torch.ones(32)
other(ids)
del state, other, block
torch.save(model.state_dict(), path)
save_file({name: each.clone() for name, each in model.state_dict().items()}, folder + "/a")
model.load_state_dict(load_file(folder + "/a"))
save_model(model, folder + "/b")
"""
META = """\
with torch.device("meta"):
    empty = Model()
empty(ids.to("meta"))
print(empty.head.weight)
empty.to_empty(device="cpu")
fill(empty)
empty(ids)
large = nn.Linear(600, 600)
large.to("meta")
large = large.to_empty(device="cpu")
large.reset_parameters()
large(torch.ones(1, 600))
"""
BUFFERS = """\
cache = torch.empty(2, 64, 32)
for place in range(4):
    cache[:, place] = torch.randn(2, 32)
    cache[:, : place + 1].sum()
out = torch.empty(8, 8)
torch.mm(torch.ones(8, 8), torch.ones(8, 8), out=out)
out.sum()
weight = nn.Parameter(torch.empty(3, 3))
nn.init.kaiming_uniform_(weight)
weight.sum()
torch.empty(0).set_(torch.ones(4).untyped_storage())
torch.ones(4).share_memory_()
nn.LSTM(4, 4)(torch.ones(3, 1, 4))
"""
KINDS = """\
jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
(jagged * 2).clone().detach().contiguous()
torch.empty_like(jagged)
torch.eye(3).to_sparse().clone().coalesce() @ torch.ones(3)
from torch._subclasses import FakeTensorMode
with FakeTensorMode():
    nn.Linear(3, 3)(torch.empty(2, 3)).sum()
gradient = torch.func.grad(lambda w, x: (w * x).sum())
torch.func.vmap(gradient, (None, 0))(torch.ones(3), torch.ones(5, 3))
torch.compile(nn.Linear(4, 4), backend="aot_eager")(torch.ones(2, 4)).sum().backward()
torch.export.export(nn.Linear(4, 4), (torch.ones(2, 4),)).module()(torch.ones(2, 4))
"""
SHARDED = """\
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_model_state_dict, get_state_dict, set_state_dict
)
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
try:
    mesh = dist.init_device_mesh("cpu", (1,))
    with torch.device("meta"):
        model = Model()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    model.to_empty(device="cpu")
    fill(model)
    optimizer = torch.optim.AdamW(model.parameters())
    model(ids).sum().backward()
    optimizer.step()
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.save(state, checkpoint_id=folder + "/saved")
    dcp.load(state, checkpoint_id=folder + "/saved")
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    dcp.async_save({"model": weights}, checkpoint_id=folder + "/later").result()
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    torch.save(get_model_state_dict(model, options=whole), folder + "/whole.pt")
finally:
    dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "program",
    [TRAINING, FILES, META, BUFFERS, KINDS, SHARDED],
    ids=["training", "files", "meta", "buffers", "kinds", "sharded"],
)
@pytest.mark.filterwarnings("ignore")
def test_nothing_to_say(tmp_path: Path, program: str) -> None:
    if "safetensors" in program:
        pytest.importorskip("safetensors")
    _, timeline, error = record(tmp_path, MODEL + program)
    if error is not None:
        raise error
    judged = findings(timeline)
    assert not judged.problems
    assert [f"{each.code} line {each.site.line}: {each.message}" for each in judged.findings] == []
    assert len(timeline.events()) > 20
