"""Saves that lose nothing: recorded with a guard, they go on, and nothing is said of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

import torch  # noqa: E402
import transformers as t  # noqa: E402

import tensortrail  # noqa: E402
from tensortrail.findings import Severity  # noqa: E402
from tests.real.hf.models import made  # noqa: E402

pytestmark = [pytest.mark.long, pytest.mark.real, pytest.mark.filterwarnings("ignore")]
SIZES: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2, "num_hidden_layers": 2,
}  # fmt: skip


def bert() -> Any:
    return t.BertForMaskedLM(t.BertConfig(vocab_size=64, **SIZES))


def vit() -> Any:
    return t.ViTForImageClassification(t.ViTConfig(image_size=32, patch_size=8, **SIZES))


def gpt2() -> Any:
    """Its head is tied to its embedding."""
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 32}
    return t.GPT2LMHeadModel(t.GPT2Config(vocab_size=64, **sizes))


def t5() -> Any:
    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    return t.T5ForConditionalGeneration(t.T5Config(vocab_size=64, **sizes))


def llama() -> Any:
    return made("Llama")


def mixtral() -> Any:
    return made("Mixtral")


def nomic() -> Any:
    return made("NomicBert")


@contextmanager
def harmless(folder: Path) -> Iterator[None]:
    with tensortrail.trace(folder / "run", guard=True) as run:
        yield
    told = [each for each in run.findings() if each.severity is not Severity.NOTE]
    assert told == []


def saved(model: Any, folder: Path, **arguments: Any) -> Any:
    model.save_pretrained(folder, **arguments)
    return type(model).from_pretrained(folder)


def offloaded(model: Any, folder: Path) -> Any:
    model.save_pretrained(folder / "source", max_shard_size="90KB")
    return type(model).from_pretrained(
        folder / "source", device_map={"": "disk"}, offload_folder=str(folder / "offload")
    )


@pytest.mark.parametrize("build", [bert, vit, gpt2, t5, llama, mixtral, nomic])
def test_whole_models_over_one_another(tmp_path: Path, build: Any) -> None:
    with harmless(tmp_path):
        model = build()
        for limit in ("50KB", "90KB", "1GB", "50KB"):
            model = saved(model, tmp_path / "model", max_shard_size=limit)
        saved(model, tmp_path / "given", state_dict=model.state_dict())
        model.save_pretrained(tmp_path / "half", variant="fp16", max_shard_size="50KB")


def test_a_device_map_of_one_place_in_memory(tmp_path: Path) -> None:
    mixtral().save_pretrained(tmp_path / "source")
    with harmless(tmp_path):
        model = t.MixtralForCausalLM.from_pretrained(tmp_path / "source", device_map="cpu")
        saved(model, tmp_path / "model", max_shard_size="90KB")


def test_offloaded_models(tmp_path: Path) -> None:
    from accelerate.utils.modeling import get_state_dict_offloaded_model

    with harmless(tmp_path):
        model = offloaded(llama(), tmp_path)
        model(torch.tensor([[1, 2, 3]]))
        for limit in ("90KB", "1GB", "50KB"):
            saved(model, tmp_path / "model", max_shard_size=limit)
        weights = get_state_dict_offloaded_model(model)
        saved(model, tmp_path / "source", state_dict=weights)


def test_adapters(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(target_modules=["q_proj", "v_proj"], r=2)
    with harmless(tmp_path):
        peft.get_peft_model(saved(llama(), tmp_path / "base"), config).save_pretrained(
            tmp_path / "adapter"
        )
        base = t.LlamaForCausalLM.from_pretrained(tmp_path / "base")
        merged = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").merge_and_unload()
        merged.save_pretrained(tmp_path / "merged")
        base = t.LlamaForCausalLM.from_pretrained(tmp_path / "base")
        base.add_adapter(config)
        base.save_pretrained(tmp_path / "alone")


def test_a_trainer_that_keeps_the_last_checkpoints_and_resumes(tmp_path: Path) -> None:
    texts = [{name: torch.randint(0, 64, (8,)) for name in ("input_ids", "labels")}] * 4
    with harmless(tmp_path):
        for steps in (3, 4):
            arguments = t.TrainingArguments(
                str(tmp_path / "out"), max_steps=steps, save_steps=1, save_total_limit=2,
                report_to=[], use_cpu=True, disable_tqdm=True,
            )  # fmt: skip
            trainer = t.Trainer(llama(), arguments, train_dataset=texts)
            trainer.train(resume_from_checkpoint=steps > 3)
        trainer.save_model(str(tmp_path / "final"))


def test_an_accelerator(tmp_path: Path) -> None:
    from accelerate import Accelerator

    with harmless(tmp_path):
        accelerator = Accelerator(cpu=True)
        model = accelerator.prepare(bert())
        accelerator.save_model(model, tmp_path / "a", max_shard_size="50KB")
        accelerator.save_model(model, tmp_path / "b", safe_serialization=False)
        accelerator.save_model(offloaded(llama(), tmp_path), tmp_path / "c", max_shard_size="90KB")
        accelerator.save_state(str(tmp_path / "state"))
        accelerator.load_state(str(tmp_path / "state"))


def test_writers_of_other_libraries(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    folder = tmp_path / "hub"
    folder.mkdir()
    with harmless(tmp_path):
        hub.save_torch_model(gpt2(), str(folder), max_shard_size="50KB")
        hub.save_torch_state_dict(bert().state_dict(), str(folder), max_shard_size="90KB")


def test_a_model_of_diffusers(tmp_path: Path) -> None:
    diffusers = pytest.importorskip("diffusers")
    with harmless(tmp_path):
        model = diffusers.UNet2DModel(
            sample_size=8, layers_per_block=1, block_out_channels=(32, 32),
            down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2,
        )  # fmt: skip
        saved(model, tmp_path / "model", max_shard_size="200KB")


def test_quantized_weights(tmp_path: Path) -> None:
    quantization = pytest.importorskip("torchao.quantization")
    bert().save_pretrained(tmp_path / "source")
    with harmless(tmp_path):
        how = t.TorchAoConfig(quantization.Int8WeightOnlyConfig())
        model = t.BertForMaskedLM.from_pretrained(tmp_path / "source", quantization_config=how)
        model.save_pretrained(tmp_path / "model")
