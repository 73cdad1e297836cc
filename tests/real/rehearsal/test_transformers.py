"""Models of transformers on simulated GPUs compute what they compute on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tensortrail.tracer.rehearsal.devices.spec import parse_spec  # noqa: E402
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
SIZES = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
}  # fmt: skip
TEXT = {**SIZES, "vocab_size": 64, "max_position_embeddings": 64}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}


def llama() -> Any:
    config = transformers.LlamaConfig(**TEXT, num_key_value_heads=1)
    return transformers.LlamaForCausalLM(config)


def mixtral() -> Any:
    config = transformers.MixtralConfig(
        **TEXT, num_key_value_heads=1, num_local_experts=4, num_experts_per_tok=2
    )
    return transformers.MixtralForCausalLM(config)


def qwen_moe() -> Any:
    config = transformers.Qwen2MoeConfig(
        **TEXT, **EXPERTS, num_key_value_heads=1, shared_expert_intermediate_size=16
    )
    return transformers.Qwen2MoeForCausalLM(config)


def bert() -> Any:
    return transformers.BertForMaskedLM(transformers.BertConfig(**TEXT))


def vit() -> Any:
    config = transformers.ViTConfig(**SIZES, image_size=16, patch_size=4, num_labels=4)
    return transformers.ViTForImageClassification(config)


GENERATORS = [llama, mixtral, qwen_moe]
MODELS = [*GENERATORS, bert, vit]


def inputs(make: Callable[[], Any], device: str) -> dict[str, Any]:
    if make is vit:
        pixels = torch.rand(2, 3, 16, 16, device=device)
        return {"pixel_values": pixels, "labels": torch.tensor([0, 1], device=device)}
    ids = torch.randint(2, 64, (2, 8), device=device)
    return {"input_ids": ids, "labels": ids}


def trained(make: Callable[[], Any], device: str) -> tuple[list[float], Any]:
    """Two steps of AdamW: the losses, and the model."""
    torch.manual_seed(0)
    model = make().train().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(2):
        loss = model(**inputs(make, device)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, model


def values(model: Any) -> list[Any]:
    return [parameter.detach().cpu() for parameter in model.parameters()]


@pytest.mark.parametrize("make", MODELS)
def test_training_gives_the_numbers_of_the_cpu(make: Callable[[], Any]) -> None:
    expected_losses, expected = trained(make, "cpu")
    with Rehearsal(parse_spec("cuda")):
        losses, model = trained(make, "cuda")
        assert {str(parameter.device) for parameter in model.parameters()} == {"cuda:0"}
        torch.testing.assert_close(losses, expected_losses)
        torch.testing.assert_close(values(model), values(expected))


@pytest.mark.parametrize("make", GENERATORS)
def test_generation_with_a_cache_gives_the_tokens_of_the_cpu(make: Callable[[], Any]) -> None:
    def generated(device: str) -> Any:
        torch.manual_seed(0)
        model = make().eval().to(device)
        prompt = torch.randint(2, 64, (2, 5), device=device)
        mask = torch.ones_like(prompt)
        return model.generate(
            prompt, attention_mask=mask, max_new_tokens=6, do_sample=False, pad_token_id=0
        )

    expected = generated("cpu")
    with Rehearsal(parse_spec("cuda")):
        tokens = generated("cuda")
        assert tokens.is_cuda
        assert tokens.tolist() == expected.tolist()


@pytest.mark.parametrize("make", MODELS)
def test_saved_from_one_device_and_loaded_onto_another(
    make: Callable[[], Any], tmp_path: Path, gpus: Any
) -> None:
    model = make().cuda()
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, device_map="cuda:1")
    assert {str(parameter.device) for parameter in loaded.parameters()} == {"cuda:1"}
    torch.testing.assert_close(values(loaded), values(model), rtol=0, atol=0)


def test_inputs_forgotten_on_the_cpu_raise_as_on_a_gpu(gpus: Any) -> None:
    model = llama().cuda()
    with pytest.raises(RuntimeError, match="index is on cpu, different from other tensors on cuda"):
        model(input_ids=torch.tensor([[1, 2, 3]]))


def test_half_precision_weights_compute_in_half_precision(gpus: Any) -> None:
    model = llama().half().cuda()
    logits = model(input_ids=torch.tensor([[1, 2, 3]], device="cuda")).logits
    assert logits.dtype == torch.float16
    assert bool(torch.isfinite(logits).all())


def test_the_trainer_takes_both_gpus_in_half_precision_and_resumes(tmp_path: Path) -> None:
    from tensortrail.tracer.recording.begin import begin
    from tensortrail.tracer.recording.options import Options

    def trained_until(step: int) -> Any:
        rows = torch.arange(64).reshape(8, 8)
        data = [{"input_ids": row, "labels": row} for row in rows]
        options = transformers.TrainingArguments(
            output_dir=tmp_path / "out", max_steps=step, save_steps=2, fp16=True,
            gradient_checkpointing=True, per_device_train_batch_size=2, disable_tqdm=True,
            report_to=[],
        )  # fmt: skip
        trainer = transformers.Trainer(model=llama(), args=options, train_dataset=data)
        trainer.train(resume_from_checkpoint=step > 2)
        return trainer

    running = begin(tmp_path / "trail", Options(rehearse=parse_spec("cuda:2x4GiB")))
    try:
        trainer = trained_until(2)
        assert trainer.args.n_gpu == 2
        trainer = trained_until(3)
        assert trainer.state.global_step == 3
        assert {str(each.device) for each in trainer.model.parameters()} == {"cuda:0"}
    finally:
        running.stop()
