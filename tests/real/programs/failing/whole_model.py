"""A whole module was pickled and is loaded with the safe loader."""
import os
import tempfile

import torch
from torch import nn

path = os.path.join(tempfile.mkdtemp(), "m.pt")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(x)


torch.save(Net(), path)
model = torch.load(path)
print(model(torch.ones(1, 8)))
