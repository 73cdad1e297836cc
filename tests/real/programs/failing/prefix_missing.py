"""A checkpoint without the wrapper's prefix is loaded into the wrapper."""
import os
import tempfile

import torch
from torch import nn

path = os.path.join(tempfile.mkdtemp(), "model.pt")


def build():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))


torch.save(build().state_dict(), path)
model = nn.DataParallel(build())
model.load_state_dict(torch.load(path))
