"""Tiny models, made from their configurations, for programs that are recorded."""

from __future__ import annotations

_SIZES = "hidden_size=64, intermediate_size=128, num_attention_heads=2, vocab_size=64"
_COMMON = f"{_SIZES}, max_position_embeddings=64, num_hidden_layers=3"
_EXPERTS = (
    "moe_intermediate_size=[16, 16], moe_k=2, moe_num_experts=4, moe_num_shared_experts=1,"
    ' mlp_layer_types=["dense", "sparse", "sparse"], rope_parameters={"rope_type": "default",'
    ' "rope_theta": 10000.0, "mrope_section": [4, 4, 8]}'
)
_MADE = {
    "NomicBert": f"t.NomicBertModel(t.NomicBertConfig({_COMMON}))",
    "Llama": f"t.LlamaForCausalLM(t.LlamaConfig({_COMMON}, num_key_value_heads=1))",
    "Mixtral": (
        f"t.MixtralForCausalLM(t.MixtralConfig({_COMMON}, num_key_value_heads=1,"
        " num_local_experts=4, num_experts_per_tok=2))"
    ),
    "Qwen2Moe": (
        f"t.Qwen2MoeForCausalLM(t.Qwen2MoeConfig({_COMMON}, num_key_value_heads=1, num_experts=4,"
        " num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16))"
    ),
    "Ernie4_5_VLMoe": (
        "t.Ernie4_5_VLMoeForConditionalGeneration(t.Ernie4_5_VLMoeConfig("
        f"text_config=dict({_COMMON}, num_key_value_heads=1, {_EXPERTS}),"
        " vision_config=dict(depth=1, hidden_size=64, num_heads=2, intermediate_size=64)))"
    ),
}
JOINED = ("NomicBert", "Ernie4_5_VLMoe")
"""Models that save several weights of theirs as one."""
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
