"""Keeps the logits of each step."""

import torch
from torch import nn

torch.manual_seed(0)


class LM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4096, 256)
        self.layers = nn.Sequential(*(nn.Linear(256, 256) for _ in range(16)))
        self.head = nn.Linear(256, 4096)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embed(ids)).flatten(0, 1))


model = LM().cuda()
optimizer = torch.optim.AdamW(model.parameters())
history = []
for step in range(100):
    ids = torch.randint(0, 4096, (4, 128), device="cuda")
    logits = model(ids)
    nn.functional.cross_entropy(logits, ids.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
    history.append(logits)
