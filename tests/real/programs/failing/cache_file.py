"""A cache of keys and values comes from a pickled file, and the model is on the GPU."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.cache_utils import DynamicCache
cfg = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
model = LlamaForCausalLM(cfg).eval()
prompt = torch.arange(6)[None]
cache = DynamicCache()
with torch.no_grad():
    model(prompt, past_key_values=cache)
torch.save(cache, "prompt.pt")
model = model.cuda()
cache = torch.load("prompt.pt", weights_only=False)
with torch.no_grad():
    out = model.generate(torch.arange(8)[None].cuda(), past_key_values=cache, max_new_tokens=4)
print(out)
