"""Ordinary programs of transformers, accelerate and peft over two simulated GPUs, the CPU and the
disk: nothing in them is wrong, and nothing is said. One that is wrong in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers"):
    pytest.importorskip(_name)

from tests.rules.recorded import found, record  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
GPUS = "cuda:2x4GiB"
SAVED = """\
import torch, transformers as t
torch.manual_seed(0)
config = t.{kind}Config(hidden_size=64, intermediate_size=128, num_attention_heads=4, vocab_size=64,
    max_position_embeddings=64, num_hidden_layers=4, num_key_value_heads=2)
t.{kind}ForCausalLM(config).save_pretrained(folder + "/saved")
def load(device_map, **more):
    return t.{kind}ForCausalLM.from_pretrained(
        folder + "/saved", device_map=device_map, offload_folder=folder + "/off", **more)
two = {{"model.embed_tokens": 0, "model.rotary_emb": 0, "model.layers.0": 0, "model.layers.1": 1,
    "model.layers.2": 1, "model.layers.3": 1, "model.norm": 1, "lm_head": 1}}
four = {{**two, "model.layers.2": "cpu", "model.layers.3": "disk"}}
ids = torch.tensor([[1, 2, 3]], device="cuda:0")
"""
GENERATES = """\
model = load(four)
model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=4, pad_token_id=0)
model.save_pretrained(folder + "/again")
"""
CHOSEN = """\
for device_map in ("auto", "balanced", "sequential"):
    load(device_map, max_memory={0: 300_000, 1: 300_000, "cpu": 10_000_000})(ids).logits.sum()
"""
ADAPTED = """\
import peft
config = peft.LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["q_proj", "v_proj"])
model = peft.get_peft_model(load({where}), config)
"""
LEARNS = """\
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for _ in range(2):
    model(ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.save_pretrained(folder + "/adapter")
again = peft.PeftModel.from_pretrained(load(two), folder + "/adapter")
again.merge_and_unload()(ids)
"""
TRAINS = """\
rows = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(8)]
options = t.TrainingArguments(output_dir=folder + "/out", max_steps=2, save_steps=2, report_to=[],
    per_device_train_batch_size=2, disable_tqdm=True)
trainer = t.Trainer(model=load(two), args=options, train_dataset=rows)
trainer.train()
trainer.evaluate(rows)
"""
HOOKED = """\
import accelerate, torch
from accelerate.hooks import remove_hook_from_submodules
def net():
    layers = torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 5)
    return torch.nn.Sequential(*layers).eval()
x = torch.randn(2, 3)
for number, offload in enumerate((
    lambda model: accelerate.cpu_offload(model, 0),
    lambda model: accelerate.cpu_offload(model, 0, offload_buffers=True),
    lambda model: accelerate.disk_offload(model, folder + "/a", 0),
    lambda model: accelerate.dispatch_model(
        model, {"0": 0, "1": "cpu", "2": "disk"}, offload_dir=folder + "/b"),
)):
    model = net()
    expected = model(x)
    offload(model)
    assert torch.allclose(model(x).cpu(), expected, atol=1e-5)
    remove_hook_from_submodules(model)
first, hook = accelerate.cpu_offload_with_hook(net(), 0)
second, _ = accelerate.cpu_offload_with_hook(net(), 0, prev_module_hook=hook)
first(x.cuda()), second(x.cuda()), first(x.cuda()), hook.offload()
"""
LLAMA = SAVED.format(kind="Llama")
complete = pytest.mark.complete


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(HOOKED, id="hooks"),
        pytest.param(LLAMA + GENERATES, id="generates", marks=complete),
        pytest.param(LLAMA + CHOSEN, id="chosen maps", marks=complete),
        pytest.param(SAVED.format(kind="Mixtral") + GENERATES, id="experts", marks=complete),
        pytest.param(LLAMA + ADAPTED.format(where="two") + LEARNS, id="lora", marks=complete),
        pytest.param(LLAMA + TRAINS, id="trainer", marks=complete),
    ],
)
def test_ordinary_programs_are_not_spoken_of(tmp_path: Path, source: str) -> None:
    if "peft" in source:
        pytest.importorskip("peft")
    _, timeline, error = record(tmp_path, source, GPUS)
    assert error is None
    assert not found(timeline)


def test_adapters_of_offloaded_layers_are_placeholders_that_nobody_fills(tmp_path: Path) -> None:
    """peft puts an adapter where its layer's weight is, and that is on meta: what the adapter adds
    is memory that nobody wrote, another one at each call, and nothing raises."""
    pytest.importorskip("peft")
    _, timeline, error = record(
        tmp_path, f"{LLAMA}{ADAPTED.format(where='four')}model(ids)\n", GPUS
    )
    assert error is None
    told = [each for each in found(timeline) if each.code == "DEV502"]
    assert told
    assert "gives uninitialised memory on cuda:0" in told[0].message
    assert "is on meta" in told[0].message
