"""Tiny models whose stored weights are not those of their modules, saved while on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_SIZES = {
    "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2, "vocab_size": 256,
    "max_position_embeddings": 64, "num_hidden_layers": 4,
}  # fmt: skip
_KEYS = {**_SIZES, "num_key_value_heads": 2}
_PICTURES = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2, "image_size": 32}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 4, 8]}
_ERNIE = {
    **_KEYS, "num_hidden_layers": 3, "moe_intermediate_size": [16, 16], "moe_k": 2,
    "moe_num_experts": 4, "moe_num_shared_experts": 1, "rope_parameters": _ROPE,
    "mlp_layer_types": ["dense", "sparse", "sparse"],
}  # fmt: skip
_ERNIE_VISION = {"depth": 1, "hidden_size": 64, "num_heads": 2, "intermediate_size": 64}
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "nomic_bert": ("NomicBertModel", "NomicBertConfig", _SIZES),
    "gte": ("GteModel", "GteConfig", _SIZES),
    "jina_embeddings_v3": ("JinaEmbeddingsV3Model", "JinaEmbeddingsV3Config", _SIZES),
    "dinov2": (
        "Dinov2Model", "Dinov2Config", {**_PICTURES, "patch_size": 8, "use_swiglu_ffn": True},
    ),
    "sapiens2": (
        "Sapiens2Model", "Sapiens2Config",
        {**_PICTURES, "patch_size": 8, "intermediate_size": 128, "num_key_value_heads": 2},
    ),
    "hrm_text": ("HrmTextForCausalLM", "HrmTextConfig", _KEYS),
    "ernie4_5_vl_moe": (
        "Ernie4_5_VLMoeForConditionalGeneration", "Ernie4_5_VLMoeConfig",
        {"text_config": _ERNIE, "vision_config": _ERNIE_VISION},
    ),
    "mixtral": (
        "MixtralForCausalLM", "MixtralConfig",
        {**_KEYS, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "qwen2_moe": (
        "Qwen2MoeForCausalLM", "Qwen2MoeConfig",
        {**_KEYS, **_EXPERTS, "shared_expert_intermediate_size": 16},
    ),
}  # fmt: skip
"""The class, its configuration and the sizes."""
KILOBYTES = (20, 50, 60, 80, 100, 120, 150, 170, 200, 250, 300)


def write_model(family: str, folder: Path) -> Any:
    """With values of which no two are alike: what is lost shows."""
    import torch
    import transformers

    kind, config, sizes = FAMILIES[family]
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**sizes))
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.is_floating_point():
                tensor.normal_()
    model.save_pretrained(folder)
    return type(model).from_pretrained(folder)


def offloaded(whole: Any, folder: Path) -> Any:
    """The model of this folder, all of it on the disk."""
    offload = folder.parent / "offload"
    return type(whole).from_pretrained(folder, device_map={"": "disk"}, offload_folder=str(offload))


def comes_back(whole: Any, model: Any, folder: Path, size: int | str) -> bool:
    """The real save of the offloaded model loads, and is what it was."""
    import torch

    try:
        model.save_pretrained(folder, max_shard_size=size)
        again = type(whole).from_pretrained(folder).state_dict()
    except (OSError, RuntimeError, ValueError):
        return False
    weights = whole.state_dict()
    return set(weights) == set(again) and all(
        torch.equal(tensor, again[name]) for name, tensor in weights.items()
    )
