"""The tied weight is a new parameter, made after the optimizer."""
import torch
from torch import nn


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.head = nn.Linear(16, 32, bias=False)

    def forward(self, x):
        return self.head(self.embed(x))

    def tie(self):
        shared = nn.Parameter(self.embed.weight.detach().clone())
        self.embed.weight = shared
        self.head.weight = shared


model = LM()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model.tie()
x = torch.randint(0, 32, (4, 6))
before = model.head.weight.detach().clone()
for _ in range(3):
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert not torch.equal(before, model.head.weight)
