"""A trainer syncs its weights into an engine. The engine loads its file again before it answers."""

import torch
import transformers

import tensortrail

torch.manual_seed(0)
config = transformers.LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=2, vocab_size=64,
)  # fmt: skip
trainer = transformers.LlamaForCausalLM(config)
engine = transformers.LlamaForCausalLM(config)
torch.save(engine.state_dict(), "base.pt")
ids = torch.tensor([[3, 1, 4, 1, 5]])
optimizer = torch.optim.AdamW(trainer.parameters())

with tensortrail.trace() as run:
    engine.load_state_dict(torch.load("base.pt"))
    for _ in range(3):
        trainer(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    engine.load_state_dict(trainer.state_dict())
    run.snapshot("synced", engine)
    engine.load_state_dict(torch.load("base.pt"))  # it wakes up, and reads its weights
    run.snapshot("before it answers", engine)

print(run.compare("synced", "before it answers"))
print(tensortrail.fingerprint(trainer).compare(tensortrail.fingerprint(engine)))
