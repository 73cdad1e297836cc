"""A model over a GPU, the CPU and the disk, whose head's weight is used without the head."""

import torch
import transformers

config = transformers.LlamaConfig(
    hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4, vocab_size=1000
)
transformers.LlamaForCausalLM(config).save_pretrained("saved")

places = {"model.embed_tokens": 0, "model.rotary_emb": 0, "model.layers.0": 0, "model.layers.1": 0,
          "model.layers.2": "cpu", "model.layers.3": "disk", "model.norm": 0, "lm_head": "cpu"}
model = transformers.LlamaForCausalLM.from_pretrained(
    "saved", device_map=places, offload_folder="offload"
)
ids = torch.tensor([[3, 1, 4, 1, 5]], device="cuda")
with torch.no_grad():
    hidden = model.model(ids).last_hidden_state
    similar = torch.nn.functional.linear(hidden, model.lm_head.weight)
