"""A save into the folder that the weights are still read from."""

import transformers

sizes = dict(hidden_size=64, intermediate_size=128, num_attention_heads=2, vocab_size=64)
config = transformers.LlamaConfig(num_hidden_layers=3, **sizes)
transformers.LlamaForCausalLM(config).save_pretrained("llama", max_shard_size="100KB")

model = transformers.LlamaForCausalLM.from_pretrained(
    "llama", device_map={"": "disk"}, offload_folder="offload"
)
model.save_pretrained("llama", max_shard_size="1MB")
