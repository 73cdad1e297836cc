"""A tied head that the device map sends to another GPU than its embedding."""

import torch
import transformers

config = transformers.LlamaConfig(
    hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, vocab_size=100,
    tie_word_embeddings=True,
)
transformers.LlamaForCausalLM(config).save_pretrained("saved")

places = {"model.embed_tokens": 0, "model.rotary_emb": 0, "model.layers": 0, "model.norm": 0, "lm_head": 1}
model = transformers.LlamaForCausalLM.from_pretrained("saved", device_map=places)
print(model.lm_head(torch.ones(1, 64, device="cuda:1")).shape)
