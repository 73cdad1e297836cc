"""A checkpoint of an older code has other names for the weights."""
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel

model = BertModel(BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=30))
folder = Path("checkpoint")
model.save_pretrained(folder)
stored = load_file(folder / "model.safetensors")
save_file({k.replace("encoder.layer.", "blocks."): v for k, v in stored.items()}, folder / "model.safetensors", {"format": "pt"})
again = BertModel.from_pretrained(folder)
there = model.encoder.layer[0].output.dense.weight
assert torch.equal(again.encoder.layer[0].output.dense.weight, there), "a layer was not loaded"
