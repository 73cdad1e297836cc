"""Moves its model to the GPU and, in its last line, forgets the ids."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, 64)
        self.blocks = nn.Sequential(*(nn.Linear(64, 64) for _ in range(6)))
        self.head = nn.Linear(64, 1000)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embed(ids)))


torch.manual_seed(0)
model = Model().to("cuda")
print(torch.cuda.get_device_name(), f"{torch.cuda.memory_allocated() / 2**20:.2f} MiB of weights")

ids = torch.randint(0, 1000, (4, 16))
loss = nn.functional.cross_entropy(model(ids.cuda()).flatten(0, 1), ids.cuda().flatten())
loss.backward()
print(f"loss {loss.item():.3f} on {loss.device}")
print(model(ids).shape)
