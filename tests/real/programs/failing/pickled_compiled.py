"""A module with a compiled function in an attribute is saved whole."""
import torch
from torch import nn


def swish(x):
    return x * torch.sigmoid(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)
        self.act = torch.compile(swish, backend="eager")

    def forward(self, x):
        return self.act(self.line(x))


model = nn.Sequential(Block(), Block())
model(torch.rand(2, 4))
torch.save(model, "model.pt")
