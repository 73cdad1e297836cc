"""A layer keeps its attention map for a plot, and the model is copied for an average."""
import copy

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.map = None

    def forward(self, x):
        weights = torch.softmax(self.mix(x) @ x.mT, dim=-1)
        self.map = weights
        return weights @ x


model = nn.Sequential(Attention(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(2, 4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
average = copy.deepcopy(model)
print(sum(each.numel() for each in average.parameters()))
