"""Fixes of peft that a test on a CPU does not show."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"
OTHER = "cuda:1" if torch.cuda.device_count() > 1 else "cpu"
TARGETS = ["first", "second"]


class Two(nn.Module):
    """Has its second layer on another device."""

    def __init__(self, other: str = GPU) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8).to(GPU)
        self.second = nn.Linear(8, 8).to(other)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).to(self.second.weight.device))


def passes(model: nn.Module) -> bool:
    return bool(model(torch.ones(2, 8, device=GPU)).isfinite().all())


@pytest.mark.fix("28a5ba112")
def test_vera_over_two_gpus():
    from peft import VeraConfig, get_peft_model

    assert passes(get_peft_model(Two(OTHER), VeraConfig(target_modules=TARGETS, r=2)))


@pytest.mark.fix("8304017a9")
def test_boft_on_a_gpu():
    from peft import BOFTConfig, get_peft_model

    assert passes(get_peft_model(Two(), BOFTConfig(target_modules=TARGETS, boft_block_size=4)))


@pytest.mark.fix("d350a00ec")
def test_a_prompt_is_made_of_words_of_the_gpu(monkeypatch):
    import transformers
    from peft import PromptTuningConfig, PromptTuningInit
    from peft.tuners.prompt_tuning import PromptEmbedding

    def from_pretrained(*_, **options):
        return lambda text: {"input_ids": [1, 2, 3, 4]}

    tokenizer = SimpleNamespace(from_pretrained=from_pretrained)
    monkeypatch.setattr(transformers, "AutoTokenizer", tokenizer)
    config = PromptTuningConfig(
        task_type="CAUSAL_LM", prompt_tuning_init=PromptTuningInit.TEXT, num_virtual_tokens=4,
        prompt_tuning_init_text="rain", tokenizer_name_or_path="none", token_dim=8,
        num_transformer_submodules=1,
    )  # fmt: skip
    embedding = PromptEmbedding(config, nn.Embedding(8, 8).to(GPU)).to(GPU)
    assert embedding(torch.arange(4, device=GPU)).shape == (4, 8)


@pytest.mark.fix("019b7ff9d")
def test_adalora_on_a_gpu():
    from peft import AdaLoraConfig
    from peft.tuners.adalora import AdaLoraModel

    model = Two()
    model.config = {"model_type": "two"}
    config = AdaLoraConfig(target_modules=TARGETS, init_r=2, target_r=1, lora_dropout=0.1)
    assert passes(AdaLoraModel(model, {"default": config}, "default"))


@pytest.mark.fix("3831e06ab")
def test_adalora_is_loaded_for_a_gpu():
    from peft import AdaLoraConfig, get_peft_model

    config = AdaLoraConfig(target_modules=TARGETS, init_r=2, target_r=1)
    assert passes(get_peft_model(Two(), config))


@pytest.mark.fix("df0e1fb59")
def test_lora_over_two_gpus():
    from peft import LoraConfig
    from peft.tuners.lora import LoraModel

    config = LoraConfig(target_modules=TARGETS, r=2, lora_alpha=2, lora_dropout=0.0)
    model = Two(OTHER)
    model.config = {"model_type": "two"}
    assert passes(LoraModel(config, model))


@pytest.mark.fix("ca8462bb6")
def test_an_adapter_of_the_cpu_is_loaded_for_a_model_of_the_gpu():
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
    from peft import set_peft_model_state_dict as load

    model = get_peft_model(Two(), LoraConfig(target_modules=TARGETS, r=2))
    state = {name: each.cpu() for name, each in get_peft_model_state_dict(model).items()}
    load(model, state, low_cpu_mem_usage=True)
    assert passes(model)


@pytest.mark.fix("3cf5359f1")
def test_another_adapter_stays_on_the_cpu():
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(target_modules=TARGETS, r=2)
    model = get_peft_model(Two(), config)
    layer = model.base_model.model.first
    layer.lora_A["default"].to("cpu")
    model.add_adapter("other", config)
    assert layer.lora_A["default"].weight.device.type == "cpu"
    assert layer.lora_A["other"].weight.device == torch.device(GPU)


@pytest.mark.fix("6d033600e")
def test_an_adapter_of_the_cpu_is_swapped_in():
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
    from peft.utils.hotswap import hotswap_adapter_from_state_dict as swap

    config = LoraConfig(target_modules=TARGETS, r=2)
    model = get_peft_model(Two(), config)
    state = {
        name.replace(".weight", ".default.weight"): each.cpu()
        for name, each in get_peft_model_state_dict(model).items()
    }
    swap(model, state, adapter_name="default", config=config)
    assert passes(model)
