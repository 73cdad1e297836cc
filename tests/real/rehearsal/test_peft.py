"""LoRA of peft on simulated GPUs: training, saving, merging, and an adapter left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

from tensortrail.tracer.rehearsal.devices.spec import parse_spec  # noqa: E402
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
CONFIG = transformers.LlamaConfig(
    vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
    num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
)  # fmt: skip
LORA = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.1)
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


def base(device: str) -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(CONFIG).to(device)


def trained(device: str) -> tuple[list[float], Any]:
    model = peft.get_peft_model(base(device), LORA)
    ids = IDS.to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1)
    torch.manual_seed(1)
    losses = []
    for _ in range(3):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, model.eval()


def logits(model: Any) -> Any:
    with torch.no_grad():
        return model(input_ids=IDS.to(model.device)).logits.cpu()


def test_training_gives_the_numbers_of_the_cpu(gpus: Any) -> None:
    losses, model = trained("cuda")
    expected_losses, expected = trained("cpu")
    assert {str(parameter.device) for parameter in model.parameters()} == {"cuda:0"}
    assert losses == pytest.approx(expected_losses, rel=1e-6)
    torch.testing.assert_close(logits(model), logits(expected))


def test_the_adapter_is_saved_loaded_and_merged(gpus: Any, tmp_path: Path) -> None:
    _, model = trained("cuda")
    model.save_pretrained(tmp_path)
    loaded = peft.PeftModel.from_pretrained(base("cuda:1"), tmp_path).eval()
    assert {str(parameter.device) for parameter in loaded.parameters()} == {"cuda:1"}
    expected = logits(model)
    torch.testing.assert_close(logits(loaded), expected)
    with loaded.disable_adapter():
        assert not torch.allclose(logits(loaded), expected)
    merged = model.merge_and_unload()
    assert {str(parameter.device) for parameter in merged.parameters()} == {"cuda:0"}
    torch.testing.assert_close(logits(merged), expected, rtol=1e-4, atol=1e-5)


def test_an_adapter_added_later_follows_the_model() -> None:
    with Rehearsal(parse_spec("cuda")):
        model = peft.get_peft_model(base("cuda"), LORA)
        model.add_adapter("second", LORA)
        assert {str(parameter.device) for parameter in model.parameters()} == {"cuda:0"}


def test_an_adapter_left_on_the_cpu_raises_as_on_a_gpu(gpus: Any) -> None:
    model = peft.get_peft_model(base("cuda"), LORA)
    model.base_model.model.model.layers[0].self_attn.q_proj.lora_A.cpu()
    with pytest.raises(RuntimeError, match="got mat2 is on cpu, different from other tensors on"):
        model(input_ids=IDS.cuda())
