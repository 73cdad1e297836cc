"""LoRA with activation checkpointing: the inputs want no gradients."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class LoRA(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Linear(16, 4, bias=False)
        self.b = nn.Linear(4, 16, bias=False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 16).requires_grad_(False)
        self.blocks = nn.ModuleList(LoRA(nn.Linear(16, 16)) for _ in range(2))
        self.head = nn.Linear(16, 10).requires_grad_(False)

    def forward(self, ids):
        h = self.embed(ids)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=True)
        return self.head(h)


model = Model()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
ids = torch.randint(0, 10, (2, 5))
for _ in range(2):
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
