"""An adapter is trained, saved, loaded again and merged"""
import shutil
import tempfile
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, vocab_size=32)
torch.manual_seed(0)
published = tempfile.mkdtemp()
LlamaForCausalLM(config).save_pretrained(published)

def base():
    return LlamaForCausalLM.from_pretrained(published)

model = get_peft_model(base(), LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad])
ids = torch.arange(16).reshape(2, 8)
for step in range(3):
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, round(loss.item(), 4))
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    merged = PeftModel.from_pretrained(base(), folder).merge_and_unload()
    merged.save_pretrained(folder)
print(torch.allclose(merged(ids).logits, model(ids).logits, atol=1e-4))
shutil.rmtree(published)
