"""A model that fits on the GPU, and a cache that does not fit beside it."""

import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM

SMALL = LlamaConfig(
    vocab_size=1000,
    hidden_size=512,
    intermediate_size=1024,
    num_hidden_layers=8,
    num_attention_heads=8,
    num_key_value_heads=8,
)

folder = tempfile.mkdtemp()
LlamaForCausalLM(SMALL).save_pretrained(folder)

model = LlamaForCausalLM.from_pretrained(folder, device_map="auto")
cache = torch.empty(1975, 1024, 1024, dtype=torch.uint8, device=0)  # room for the answers
ids = torch.randint(1000, (1, 16), device=0)
with torch.no_grad():
    print("loss", model(ids, labels=ids).loss.item())
