"""A head that the checkpoint does not have, in a model that is all on disk."""

import torch
import transformers

config = transformers.LlamaConfig(
    hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, vocab_size=100
)
transformers.LlamaForCausalLM(config).save_pretrained("saved")

model = transformers.LlamaForSequenceClassification.from_pretrained(
    "saved", device_map={"model": "disk", "score": "disk"}, offload_folder="offload"
)
print(model(torch.tensor([[3, 1, 4]])).logits)
