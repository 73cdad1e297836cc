"""An engine sleeps: it frees the memory of its weights, and gets it back to fill it again.

One of the weights is not in the copy that it wakes up with. Nothing raises."""

import torch
import transformers

import tensortrail

torch.manual_seed(0)
config = transformers.LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=2, vocab_size=64,
)  # fmt: skip
engine = transformers.LlamaForCausalLM(config).eval()
ids = torch.tensor([[3, 1, 4, 1, 5]])

with tensortrail.trace() as run:
    run.snapshot("before sleep", engine)
    kept = {name: p.detach().clone() for name, p in engine.named_parameters()}
    kept.pop("model.norm.weight")  # "it is never trained"
    for parameter in engine.parameters():
        parameter.untyped_storage().resize_(0)
    run.snapshot("asleep", engine)
    for name, parameter in engine.named_parameters():
        parameter.untyped_storage().resize_(parameter.numel() * 4)
        if name in kept:
            parameter.data.copy_(kept[name])
    run.snapshot("awake", engine)
    with torch.no_grad():
        engine(ids)

print(run.compare("before sleep", "awake"))
