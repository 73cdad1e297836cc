"""Small programs with the bugs that weight checkers were wished for, on real libraries: each is
found, and what these libraries do on purpose is not."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tensortrail.findings import Severity
from tests.rules.recorded import MARK, found, record, watched

CODES = ("NEW306", "NEW311", "SHD414", "SHD417", "SHD418", "SHD419")
ENGINE = """\
import torch
from transformers import LlamaConfig, LlamaForCausalLM
sizes = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=2, vocab_size=32)
ids = torch.tensor([[3, 1, 4]])
class Engine:
    def __init__(self):
        self.model = LlamaForCausalLM.from_pretrained(saved)
        for each in self.parts().values():
            each.data = each.data.clone()  # files are mapped, and cannot sleep
    def parts(self):
        return {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
    def sleep(self, keeps):
        self.kept = {k: v.detach().clone() for k, v in self.parts().items() if keeps(k)}
        self.sizes = {k: v.untyped_storage().nbytes() for k, v in self.parts().items()}
        for each in self.parts().values():
            each.untyped_storage().resize_(0)
    def wake(self):
        for name, each in self.parts().items():
            each.untyped_storage().resize_(self.sizes[name])
            if name in self.kept:
                each.data.copy_(self.kept[name])
    def reload(self):
        from safetensors.torch import load_file
        for name, value in load_file(saved + "/model.safetensors").items():
            self.model.get_parameter(name).data.copy_(value)
    def sync(self, trainer):
        for name, value in trainer.named_parameters():
            self.model.get_parameter(name).data.copy_(value.detach())
    @torch.no_grad()
    def answer(self):
        return self.model(ids).logits
saved = folder + "/saved"
trainer = LlamaForCausalLM(LlamaConfig(**sizes))
trainer.save_pretrained(saved)
engine = Engine()
buffers = lambda name: "rotary" in name
engine.answer()
"""


@pytest.mark.parametrize(
    ("bug", "names"),
    [
        # vllm#29341, #21336: level 2 discards weights, and nothing loads them again
        ("engine.sleep(buffers)\nengine.wake()", "embed_tokens.weight`"),
        # NeMo-RL#2631, vllm#16564: weights are loaded again, and buffers are not
        ("engine.sleep(lambda name: False)\nengine.wake()\nengine.reload()", "inv_freq`"),
        # vllm#52479: a part of the model that the reload does not know
        ("engine.sleep(lambda name: 'norm' not in name)\nengine.wake()", "norm.weight`"),
    ],
)
def test_memory_that_nobody_filled_after_a_sleep(tmp_path: Path, bug: str, names: str) -> None:
    _, timeline, error = record(tmp_path, f"{ENGINE}{bug}\nengine.answer()\n")
    assert error is None
    told = [e for e in found(timeline, "NEW306") if e.severity is Severity.ERROR]
    assert told
    assert any(names in each.message for each in told)
    assert all("since `UntypedStorage.resize_` at program.py:20" in e.message for e in told)


def test_an_adapter_is_not_restored(tmp_path: Path) -> None:
    """vllm#53888: the base comes back, the adapter does not."""
    pytest.importorskip("peft")
    source = """\
from peft import LoraConfig, get_peft_model
engine.model = get_peft_model(engine.model, LoraConfig(target_modules=["q_proj"]))
engine.sleep(lambda name: "lora" not in name)
engine.wake()
engine.answer()
"""
    _, timeline, _ = record(tmp_path, ENGINE + source)
    told = found(timeline, "NEW306")
    assert told
    assert all("lora_" in each.message for each in told)


def test_the_engine_reads_its_file_over_a_sync(tmp_path: Path) -> None:
    """trl#5312."""
    source = """\
def generate():
    engine.reload()
    return engine.answer()
engine.sleep(buffers)
engine.wake()
engine.sync(trainer)
generate()
"""
    line = "            self.model.get_parameter(name).data.copy_(value)\n"
    marked = ENGINE.replace(line, f"{line.rstrip()}  {MARK}\n", 1)
    finding = watched(tmp_path, marked + source, "SHD419").only
    assert "the values written at program.py:29 are lost" in finding.message
    assert "those of model.safetensors" in finding.message


FUSED = """\
import torch
fused = torch.nn.Linear(4, 12, bias=False)
fused.state_dict()
for place in range(3):
    staged = torch.empty(12, 4)
    staged[4 * place : 4 * place + 4] = torch.ones(4, 4)
    fused.weight.data.copy_(staged)
fused(torch.ones(1, 4))  # flagged
"""


def test_a_fused_weight_gets_the_rest_of_a_staging_buffer(tmp_path: Path) -> None:
    """Each of q, k and v overwrites the two others with what was in the memory."""
    finding = watched(tmp_path, FUSED, "NEW306").only
    assert "192 B, of which at most 64 B were written" in finding.message


def test_scales_are_not_sent(tmp_path: Path) -> None:
    """vllm#45835: memory is made for scales that are not among what is sent."""
    source = f"""\
import torch
class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 4).to(torch.float8_e4m3fn), False)
        self.scale = torch.nn.Parameter(torch.ones(4), False)
    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight.float() * self.scale)  {MARK}
layer = Scaled()
sent = {{"weight": layer.weight.clone()}}
layer.to("meta")
layer.to_empty(device="cpu")
layer.load_state_dict(sent, strict=False)
layer(torch.ones(1, 4))
"""
    assert "scale" in watched(tmp_path, source, "NEW306").only.message


RELOADED = """\
import torch
class Mixer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("A", "D", "dt_bias"):
            setattr(self, name, torch.nn.Parameter(torch.ones(8, dtype=torch.bfloat16), False))
    def forward(self, x):
        return x * self.A + x * self.D + self.dt_bias
mixer = Mixer()
weights = {name: each.clone() for name, each in mixer.state_dict().items()}
mixer.to("meta")
buffered = [(name, value) for name, value in weights.items() if name not in dropped]
for name, each in list(mixer.named_parameters()):
    memory = torch.empty_strided(each.shape, each.stride(), dtype=each.dtype)
    setattr(mixer, name, torch.nn.Parameter(memory, False))
for name, value in buffered:
    mixer.get_parameter(name).data.copy_(value)
mixer(torch.ones(8, dtype=torch.bfloat16))
"""


def test_a_reload_layer_by_layer_drops_a_load(tmp_path: Path) -> None:
    """prime-rl#2714: all weights of a layer get new memory, and one of the loads kept for them
    is not replayed."""
    line = "        return x * self.A + x * self.D + self.dt_bias\n"
    marked = RELOADED.replace(line, f"{line.rstrip()}  {MARK}\n", 1)
    finding = watched(tmp_path, 'dropped = {"D"}\n' + marked, "NEW306").only
    assert "`Mixer.D`" in finding.message
    assert "since `torch.empty_strided` at program.py:15" in finding.message


def test_a_reload_layer_by_layer_that_replays_all(tmp_path: Path) -> None:
    _, timeline, error = record(tmp_path, "dropped = set()\n" + RELOADED)
    assert error is None
    assert not found(timeline, *CODES)


HEALTHY = {
    "sleep and wake": "engine.sleep(lambda name: True)\nengine.wake()",
    "sleep, reload": "engine.sleep(buffers)\nengine.wake()\nengine.reload()",
    "sleep, reload, sync": "engine.sleep(buffers)\nengine.wake()\nengine.reload()\n"
    "engine.sync(trainer)",
    "sync": "for _ in range(3):\n    engine.sync(trainer)\n    engine.answer()",
    "merge": """\
from peft import LoraConfig, PeftModel, get_peft_model
adapted = get_peft_model(trainer, LoraConfig(target_modules=["q_proj"]))
adapted.save_pretrained(folder + "/adapter")
engine.model = PeftModel.from_pretrained(engine.model, folder + "/adapter")
engine.answer()
engine.model = engine.model.merge_and_unload()
engine.model.save_pretrained(folder + "/merged")
saved = folder + "/merged"
engine = Engine()""",
    "quantize": """\
from torchao.quantization import Int8WeightOnlyConfig, quantize_
quantize_(engine.model, Int8WeightOnlyConfig())
torch.save(engine.model.state_dict(), folder + "/int8.pt")
with torch.device("meta"):
    other = LlamaForCausalLM(LlamaConfig(**sizes))
other.load_state_dict(torch.load(folder + "/int8.pt", weights_only=False), assign=True)
other.model.rotary_emb = engine.model.model.rotary_emb
engine.model = other""",
    "resume": """\
optimizer = torch.optim.AdamW(trainer.parameters())
for _ in range(2):
    trainer(ids, labels=ids).loss.backward()
    optimizer.step()
torch.save({"model": trainer.state_dict(), "optimizer": optimizer.state_dict()}, folder + "/c.pt")
state = torch.load(folder + "/c.pt")
engine.model.load_state_dict(state["model"])
torch.optim.AdamW(engine.model.parameters()).load_state_dict(state["optimizer"])""",
    "distributed checkpoint": """\
import torch.distributed.checkpoint as dcp
dcp.save(trainer.state_dict(), checkpoint_id=folder + "/dcp")
state = engine.model.state_dict()
dcp.load(state, checkpoint_id=folder + "/dcp")
engine.model.load_state_dict(state)""",
    "a new head": """\
from transformers import LlamaForSequenceClassification
engine.model = LlamaForSequenceClassification.from_pretrained(saved, pad_token_id=0)
optimizer = torch.optim.AdamW(engine.model.parameters())
engine.model(ids, labels=torch.tensor([1])).loss.backward()
optimizer.step()""",
}


@pytest.mark.complete
@pytest.mark.parametrize("does", HEALTHY.values(), ids=HEALTHY)
def test_what_is_done_on_purpose(tmp_path: Path, does: str) -> None:
    for library in ("peft", "torchao"):
        if library in does:
            pytest.importorskip(library)
    _, timeline, error = record(tmp_path, f"{ENGINE}{does}\nengine.answer()\n")
    assert error is None, error
    assert [f"{e.code} {e.site.line}: {e.message}" for e in found(timeline, *CODES)] == []
