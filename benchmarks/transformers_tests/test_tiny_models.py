"""The tests that transformers' models have in common, over small models of some architectures.

They are the project's own (`test_modeling_common.py`). Its source release leaves out the files that
hand each architecture to them: this file does it for some."""

from __future__ import annotations

import unittest
from typing import Any

import torch
import transformers

from .test_modeling_common import ModelTesterMixin

SIZES = {
    "vocab_size": 99, "hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "head_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
MIXTURE = {
    "num_experts_per_tok": 2, "num_local_experts": 4, "moe_intermediate_size": 16,
    "intermediate_size": 32,
}  # fmt: skip
"""Experts are multiplied in groups, whose rows are of a multiple of 16 bytes."""
OF_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
ARCHITECTURES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "Llama": (("Model", "ForCausalLM"), {}),
    "Mistral": (("Model", "ForCausalLM"), {}),
    "Mixtral": (("Model", "ForCausalLM"), MIXTURE),
    "Qwen2": (("Model", "ForCausalLM"), {}),
    "Qwen3": (("Model", "ForCausalLM"), {}),
    "Qwen3Moe": (("Model", "ForCausalLM"), {**MIXTURE, "num_experts": 4}),
    "Gemma2": (("Model", "ForCausalLM"), {}),
    "Phi3": (("Model", "ForCausalLM"), {}),
    "Olmo2": (("Model", "ForCausalLM"), {}),
    "GPT2": (("Model", "LMHeadModel"), OF_GPT2),
    "GPTNeoX": (("Model", "ForCausalLM"), {}),
    "OPT": (("Model", "ForCausalLM"), {"ffn_dim": 37, "word_embed_proj_dim": 32}),
    "Bert": (("Model", "ForMaskedLM"), {}),
    "Roberta": (("Model", "ForMaskedLM"), {}),
}


class SmallModel:
    """What the common tests ask of a model: a small configuration, and inputs for it."""

    batch_size, seq_length, is_training = 3, 7, True
    hidden_size, num_hidden_layers, num_attention_heads = 32, 2, 4

    def __init__(self, parent: Any, name: str, settings: dict[str, Any]) -> None:
        self.parent = parent
        self._config = getattr(transformers, f"{name}Config")
        self._settings = {**SIZES, **settings}

    def get_config(self) -> Any:
        known = self._config().to_dict()
        return self._config(**{k: v for k, v in self._settings.items() if k in known})

    def prepare_config_and_inputs_for_common(self) -> tuple[Any, dict[str, Any]]:
        from transformers.testing_utils import torch_device

        ids = torch.randint(3, SIZES["vocab_size"], (self.batch_size, self.seq_length))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        return self.get_config(), {name: each.to(torch_device) for name, each in inputs.items()}


def _tests_of(name: str, heads: tuple[str, ...], settings: dict[str, Any]) -> type:
    def set_up(self: Any) -> None:
        self.model_tester = SmallModel(self, name, settings)

    classes = tuple(getattr(transformers, f"{name}{head}") for head in heads)
    body = {"setUp": set_up, "all_model_classes": classes, "__module__": __name__}
    return type(f"{name}ModelTest", (ModelTesterMixin, unittest.TestCase), body)


for _name, (_heads, _settings) in ARCHITECTURES.items():
    globals()[f"{_name}ModelTest"] = _tests_of(_name, _heads, _settings)
