"""An adapter is loaded for inference, and then trained."""
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                     num_attention_heads=2, num_key_value_heads=2)
folder = tempfile.mkdtemp()
get_peft_model(LlamaForCausalLM(config), LoraConfig(target_modules=["q_proj"])).save_pretrained(folder)

base = LlamaForCausalLM(config)
model = PeftModel.from_pretrained(base, folder)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(0, 64, (2, 8))
for _ in range(2):
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
