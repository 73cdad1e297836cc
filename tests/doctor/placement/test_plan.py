"""The map is accelerate's own, and the reasons are right when a limit is moved."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import transformers

from tensortrail.doctor.library_models import NoModel, quietly
from tensortrail.doctor.placement.limits import BadLimit, Limits, limits_of, size_of
from tensortrail.doctor.placement.plan import Plan, planned
from tensortrail.doctor.placement.unloaded import Unloaded, unloaded

SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "vocab_size": 500}
DEEP = {**SMALL, "num_hidden_layers": 6, "num_key_value_heads": 2}
TINY_T5 = {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_layers": 4, "num_heads": 4}
MODELS: dict[str, dict[str, Any]] = {
    "LlamaForCausalLM": DEEP,
    "Qwen2ForCausalLM": {**DEEP, "tie_word_embeddings": True},
    "MixtralForCausalLM": {**DEEP, "num_local_experts": 4},
    "GemmaForCausalLM": {**DEEP, "head_dim": 16},
    "BertModel": {**SMALL, "num_hidden_layers": 6},
    "GPT2LMHeadModel": {"n_embd": 64, "n_layer": 6, "n_head": 4, "vocab_size": 500},
    "OPTForCausalLM": {**SMALL, "ffn_dim": 128, "num_hidden_layers": 6, "word_embed_proj_dim": 64},
    "T5ForConditionalGeneration": {**TINY_T5, "vocab_size": 500},
    "ViTForImageClassification": {**SMALL, "num_hidden_layers": 6},
    "FalconForCausalLM": {**SMALL, "num_hidden_layers": 6},
}


def config_of(name: str, folder: Any) -> str:
    settings = getattr(transformers, name).config_class(**MODELS[name])
    settings.architectures, settings.dtype = [name], "float16"
    settings.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Unloaded]:
    with quietly():
        return {name: unloaded(config_of(name, tmp_path_factory.mktemp(name))) for name in MODELS}


def size(model: Unloaded) -> int:
    from accelerate.utils.modeling import compute_module_sizes

    return int(compute_module_sizes(model.model)[""])


def scarce(model: Unloaded, gpus: int = 1) -> Limits:
    """Room for a half of it on all GPUs together, for a quarter on the CPU."""
    whole = size(model)
    return Limits((int(whole * 0.55 / gpus),) * gpus, whole // 2, True)


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("name", list(MODELS))
def test_the_map_is_that_of_the_libraries(
    models: dict[str, Unloaded], name: str, gpus: int
) -> None:
    from accelerate import infer_auto_device_map
    from accelerate.utils import get_balanced_memory
    from transformers.integrations.accelerate import _get_device_map

    model, limits = models[name].model, scarce(models[name], gpus)
    parts = list(model._no_split_modules or ())
    memory = get_balanced_memory(model, limits.as_max_memory(), parts)
    plan = planned(models[name], limits)
    assert plan.device_map == infer_auto_device_map(model, memory, parts)
    assert plan.device_map == _get_device_map(model, "auto", limits.as_max_memory(), None)
    assert {"cpu", "disk"} & set(plan.device_map.values())
    assert sum(plan.used.values()) == plan.total == size(models[name])
    plan = planned(models[name], limits, "sequential")
    assert plan.device_map == infer_auto_device_map(model, limits.as_max_memory(), parts)


@pytest.mark.parametrize("name", list(MODELS))
def test_the_reason_is_right_to_the_byte(models: dict[str, Unloaded], name: str) -> None:
    model, limits = models[name], scarce(models[name])
    plan = planned(model, limits, "sequential")
    reason = plan.reasons[0]
    assert reason.device == 0
    assert on(plan, reason.module) != 0

    def again(more: int) -> Plan:
        return planned(model, Limits((limits.gpus[0] + more,), limits.cpu, True), "sequential")

    assert on(again(reason.missing - 1), reason.module) != 0
    assert on(again(reason.missing), reason.module) == 0


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "Qwen2ForCausalLM"])
def test_so_much_more_is_needed_and_no_less(models: dict[str, Unloaded], name: str) -> None:
    model, limits = models[name], scarce(models[name], 2)
    plan = planned(model, limits)
    assert plan.shortage

    def away(more: int) -> bool:
        bigger = Limits(tuple(each + more for each in limits.gpus), limits.cpu, True)
        return bool({"cpu", "disk"} & set(planned(model, bigger).device_map.values()))

    assert not away(plan.shortage)
    assert away(plan.shortage - plan.total // 1000)


def test_what_stays_together_and_what_is_moved(models: dict[str, Unloaded]) -> None:
    plan = planned(models["Qwen2ForCausalLM"], scarce(models["Qwen2ForCausalLM"]))
    (layer,) = plan.unsplit
    assert (layer.name, layer.modules) == ("Qwen2DecoderLayer", 6)
    assert plan.tied == (("lm_head.weight", "model.embed_tokens.weight"),)
    assert plan.device_map["lm_head"] == plan.device_map["model.embed_tokens"]
    waiting = {name for name, at in plan.device_map.items() if at in ("cpu", "disk")}
    layers = sum(name.startswith("model.layers.") for name in waiting)
    moved = sum(plan.moved.values())
    assert layers * layer.largest <= moved <= layers * layer.largest + 64 * 2


def test_enough_room_offloads_nothing(models: dict[str, Unloaded]) -> None:
    model = models["LlamaForCausalLM"]
    plan = planned(model, Limits((2 * size(model),), None, False))
    assert plan.device_map == {"": 0}
    assert (plan.shortage, plan.reasons, dict(plan.moved)) == (0, (), {})


def test_a_quantized_model_is_as_large_as_its_weights(tmp_path: Any) -> None:
    import torch
    from safetensors.torch import save_file

    settings = transformers.LlamaConfig(**DEEP)
    settings.architectures, settings.dtype = ["LlamaForCausalLM"], "float16"
    settings.quantization_config = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    settings.save_pretrained(tmp_path)
    with pytest.raises(NoModel, match="its weights are not beside the configuration"):
        unloaded(str(tmp_path))
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**DEEP)).half()
    stored: dict[str, torch.Tensor] = {}
    for name, each in model.state_dict().items():
        if "_proj" in name:
            stem, (out, into) = name.removesuffix(".weight"), each.shape
            stored[f"{stem}.qweight"] = torch.zeros(into // 8, out, dtype=torch.int32)
            stored[f"{stem}.scales"] = torch.ones(into // 32, out, dtype=torch.float16)
        else:
            stored[name] = each
    save_file(stored, tmp_path / "model.safetensors")
    found = unloaded(str(tmp_path))
    weights = sum(each.numel() * each.element_size() for each in found.model.parameters())
    assert weights == sum(each.numel() * each.element_size() for each in stored.values())
    plan = planned(found, scarce(found))
    assert sum(plan.used.values()) == plan.total == size(found)
    assert size(unloaded(str(tmp_path), "float16")) > size(found)


@pytest.mark.parametrize(
    ("words", "gpus"),
    [
        ([["24GiB"]], (24 << 30,)),
        ([["24GiB", "x2"]], (24 << 30,) * 2),
        ([["2x24GiB"], ["1.5GB"]], (24 << 30, 24 << 30, 1_500_000_000)),
        ([["24GiBx2", "8GiB,x2"]], (24 << 30, 24 << 30, 8 << 30, 8 << 30)),
        ([["1000"]], (1000,)),
    ],
)
def test_how_gpus_are_written(words: list[list[str]], gpus: tuple[int, ...]) -> None:
    assert limits_of(words, "", False).gpus == gpus


@pytest.mark.parametrize("text", ["", "24 apples", "x2", "GiB", "-1GB", "24i"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(BadLimit, match="is not a size"):
        size_of(text)


def test_the_whole_word_is_quoted() -> None:
    with pytest.raises(BadLimit, match="'24XB' is not a size"):
        limits_of([["24XB"]], "", False)


def on(plan: Plan, module: str) -> object:
    from tensortrail.doctor.placement.plan import device_of

    return device_of(module, plan.device_map)
