"""Weights of real libraries: what they do on purpose is told as it is, and damage is found."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import tensortrail
from tensortrail.tracer.audit.changes import Became
from tensortrail.tracer.audit.ranks import together
from tensortrail.tracer.audit.snapshot import Snapshot
from tests import warm
from tests.tracer.ranks import environment, launched


def quantized() -> nn.Module:
    torchao = pytest.importorskip("torchao.quantization")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    torchao.quantize_(model, torchao.Int8WeightOnlyConfig())
    return model


def test_a_quantized_model_and_its_file(tmp_path: Path) -> None:
    model = quantized()
    before = tensortrail.fingerprint(model)
    assert len(before.marks) > 4, "each part of a wrapper has a mark of its own"
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    with torch.device("meta"):
        other = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    assert len(before.compare(tensortrail.fingerprint(other)).of(Became.UNCHANGED)) == 0
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=False), assign=True)
    assert before.compare(tensortrail.fingerprint(other)).same


def test_a_scale_that_was_lost() -> None:
    model = quantized()
    before = tensortrail.fingerprint(model)
    weight = model[1].weight
    scale = next(n for n in weight.__tensor_flatten__()[0] if "scale" in n)
    getattr(weight, scale).fill_(1)
    told = before.compare(tensortrail.fingerprint(model))
    (changed,) = told.of(Became.CHANGED)
    assert changed.name.startswith("1.weight/")


@pytest.mark.complete
def test_merged_adapters_and_saved_models(tmp_path: Path) -> None:
    transformers, peft = pytest.importorskip("transformers"), pytest.importorskip("peft")
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, vocab_size=64, tie_word_embeddings=True,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    before = tensortrail.fingerprint(model)
    model.save_pretrained(tmp_path / "saved")
    again = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "saved")
    assert before.compare(tensortrail.fingerprint(again)).same
    adapted = peft.get_peft_model(again, peft.LoraConfig(target_modules=["q_proj"]))
    with torch.no_grad():
        for name, each in adapted.named_parameters():
            each.add_(0.1) if "lora_B" in name else each
    merged = adapted.merge_and_unload()
    told = before.compare(tensortrail.fingerprint(merged))
    assert {e.name.split(".")[-2] for e in told.of(Became.CHANGED)} == {"q_proj"}
    merged.lm_head.weight = nn.Parameter(merged.lm_head.weight.detach().clone())
    assert "no longer" in str(before.compare(tensortrail.fingerprint(merged)))


SHARDED = """\
import sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard
import tensortrail
dist.init_process_group("gloo")
def net():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 16))
    for layer in (*model, model):
        fully_shard(layer)
    return model
model = net()
tensortrail.fingerprint(model).save(f"before{dist.get_rank()}of{dist.get_world_size()}.json")
dcp.save(model.state_dict(), checkpoint_id="saved")
for each in model.parameters():
    each.to_local().detach().zero_()
state = model.state_dict()
dcp.load(state, checkpoint_id="saved")
model.load_state_dict(state)
if len(sys.argv) > 1:
    model[1].bias.to_local().detach().add_(1)
tensortrail.fingerprint(model).save(f"after{dist.get_rank()}of{dist.get_world_size()}.json")
dist.destroy_process_group()
"""


@pytest.mark.complete
def test_shards_of_two_ranks_and_of_one(tmp_path: Path) -> None:
    assert launched(tmp_path, SHARDED).returncode == 0
    alone = environment() | {
        "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0",
        "LOCAL_RANK": "0",
    }  # fmt: skip
    warm.run(["prog.py", "damaged"], tmp_path, env=alone).check_returncode()

    def whole(name: str, ranks: int) -> Snapshot:
        files = [tmp_path / f"{name}{rank}of{ranks}.json" for rank in range(ranks)]
        return together(Snapshot.read(file) for file in files)

    assert whole("before", 2).compare(whole("after", 2)).same
    assert whole("before", 2).compare(whole("before", 1)).same
    told = whole("before", 2).compare(whole("after", 1))
    assert [each.name for each in told.of(Became.CHANGED)] == ["1.bias"]
