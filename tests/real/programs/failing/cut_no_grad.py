"""The loss is computed from features that were made without a graph."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 16)
        self.out = nn.Linear(16, 1)

    @torch.no_grad()
    def forward(self, x):
        return self.out(torch.relu(self.encoder(x)))


model = Model()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    x = torch.randn(4, 8)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
