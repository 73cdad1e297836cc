"""The layers stand in a plain list, and the optimizer gets none of them."""
import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(depth)]

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


tower = Tower(3)
optimizer = torch.optim.Adam(tower.parameters(), lr=1e-3)
tower(torch.rand(2, 8)).sum().backward()
optimizer.step()
