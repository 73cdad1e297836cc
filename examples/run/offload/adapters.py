"""An adapter that is added to layers which are offloaded."""

import peft
import torch
import transformers

config = transformers.LlamaConfig(
    hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, vocab_size=1000
)
transformers.LlamaForCausalLM(config).save_pretrained("saved")

places = {"model.embed_tokens": "cpu", "model.rotary_emb": "cpu", "model.layers": "disk",
          "model.norm": "cpu", "lm_head": "cpu"}
model = transformers.LlamaForCausalLM.from_pretrained(
    "saved", device_map=places, offload_folder="offload"
)
model = peft.get_peft_model(model, peft.LoraConfig(target_modules=["q_proj"]))
with torch.no_grad():
    model(torch.tensor([[3, 1, 4]]))
