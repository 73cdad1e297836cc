"""Tiny models, made from their configurations, for programs that are recorded."""

from __future__ import annotations

from typing import Any

_SIZES = "hidden_size=64, intermediate_size=128, num_attention_heads=2, vocab_size=64"
_COMMON = f"{_SIZES}, max_position_embeddings=64, num_hidden_layers=3"
_ONE_KEY = f"{_COMMON}, num_key_value_heads=1"
_EXPERTS = (
    "moe_intermediate_size=[16, 16], moe_k=2, moe_num_experts=4, moe_num_shared_experts=1,"
    ' mlp_layer_types=["dense", "sparse", "sparse"], rope_parameters={"rope_type": "default",'
    ' "rope_theta": 10000.0, "mrope_section": [4, 4, 8]}'
)
_ROUTED = "num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16"
_DEEP = (
    f"{_COMMON}, num_key_value_heads=2, n_routed_experts=4, n_shared_experts=1,"
    " num_experts_per_tok=2, moe_intermediate_size=16, kv_lora_rank=16, q_lora_rank=16,"
    " qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, first_k_dense_replace=1,"
    " n_group=1, topk_group=1"
)
_MADE = {
    "NomicBert": f"t.NomicBertModel(t.NomicBertConfig({_COMMON}))",
    "Llama": f"t.LlamaForCausalLM(t.LlamaConfig({_ONE_KEY}))",
    "Mixtral": (
        f"t.MixtralForCausalLM(t.MixtralConfig({_ONE_KEY}, num_local_experts=4,"
        " num_experts_per_tok=2))"
    ),
    "Qwen2Moe": (
        f"t.Qwen2MoeForCausalLM(t.Qwen2MoeConfig({_ONE_KEY}, {_ROUTED},"
        " shared_expert_intermediate_size=16))"
    ),
    "Qwen3Moe": f"t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig({_ONE_KEY}, {_ROUTED}, head_dim=32))",
    "DeepseekV2": f"t.DeepseekV2ForCausalLM(t.DeepseekV2Config({_DEEP}))",
    "DeepseekV3": f"t.DeepseekV3ForCausalLM(t.DeepseekV3Config({_DEEP}))",
    "Ernie4_5_Moe": (
        f"t.Ernie4_5_MoeForCausalLM(t.Ernie4_5_MoeConfig({_ONE_KEY}, moe_num_experts=4, moe_k=2,"
        " moe_intermediate_size=16, moe_num_shared_experts=1, moe_layer_start_index=1))"
    ),
    "Ernie4_5_VLMoe": (
        "t.Ernie4_5_VLMoeForConditionalGeneration(t.Ernie4_5_VLMoeConfig("
        f"text_config=dict({_ONE_KEY}, {_EXPERTS}),"
        " vision_config=dict(depth=1, hidden_size=64, num_heads=2, intermediate_size=64)))"
    ),
}
JOINED = ("NomicBert", "Ernie4_5_VLMoe")
"""Models that save several weights of theirs as one."""
AS_THEY_ARE = ("Llama",)
"""Models that save their weights as they hold them."""
MODELS = tuple(_MADE)
DISK = '{"": "disk"}'
NO_SETTINGS = "{}"


def program(model: str, then: str, device_map: str = DISK, saved_with: str = NO_SETTINGS) -> str:
    """`model`, saved into `folder + "/source"` and offloaded from there; then the rest."""
    return f"""\
import transformers as t
made = {_MADE[model]}
made.save_pretrained(folder + "/source", **{saved_with})
model = type(made).from_pretrained(
    folder + "/source", device_map={device_map}, offload_folder=folder + "/offload"
)
{then}"""


def made(model: str) -> Any:
    """With values of which no two are alike: what is lost shows."""
    import torch
    import transformers

    torch.manual_seed(0)
    found = eval(_MADE[model], {"t": transformers})
    with torch.no_grad():
        for tensor in (*found.parameters(), *found.buffers()):
            if tensor.is_floating_point():
                tensor.normal_()
    return found


def halves(model: Any) -> dict[str, str]:
    """A device map: the first modules in memory, the others on the disk."""
    parts: list[str] = []
    for name, module in model.named_modules():
        is_part = next(module.children(), None) is None or name.rpartition(".")[2].isdigit()
        if name and is_part and not any(name.startswith(f"{part}.") for part in parts):
            parts.append(name)
    return {part: ("cpu" if n < len(parts) // 2 else "disk") for n, part in enumerate(parts)}
