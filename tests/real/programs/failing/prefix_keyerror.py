"""The keys of a compiled model are read by hand."""
import os
import tempfile

import torch
from torch import nn

path = os.path.join(tempfile.mkdtemp(), "model.pt")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10)

    def forward(self, x):
        return self.head(self.embed(x))


model = torch.compile(Net(), backend="eager")
torch.save(model.state_dict(), path)

state = torch.load(path)
other = Net()
with torch.no_grad():
    other.embed.weight.copy_(state["embed.weight"])
