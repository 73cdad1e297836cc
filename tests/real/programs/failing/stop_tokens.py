"""A stopping criterion keeps its tokens on the CPU."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM, StoppingCriteria, StoppingCriteriaList
model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4)).cuda()
class Stop(StoppingCriteria):
    def __init__(self, ids): self.ids = torch.tensor(ids)
    def __call__(self, input_ids, scores, **kw):
        return torch.isin(input_ids[:, -1], self.ids)
print(model.generate(torch.arange(4)[None].cuda(), max_new_tokens=3, stopping_criteria=StoppingCriteriaList([Stop([3])])))
