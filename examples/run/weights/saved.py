"""An adapter is merged into a model: two snapshots, as files."""

import peft
import torch
import transformers

import tensortrail

torch.manual_seed(0)
config = transformers.LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=2, vocab_size=64,
)  # fmt: skip
model = transformers.LlamaForCausalLM(config)
tensortrail.fingerprint(model, "before").save("before.json")
adapted = peft.get_peft_model(
    model, peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False)
)
tensortrail.fingerprint(adapted.merge_and_unload(), "merged").save("after.json")
