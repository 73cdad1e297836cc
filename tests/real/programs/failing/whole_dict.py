"""The whole checkpoint is given to load_state_dict."""
import os
import tempfile

import torch
from torch import nn

path = os.path.join(tempfile.mkdtemp(), "m.pt")
model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 2))
torch.save({"epoch": 3, "state_dict": model.state_dict(), "lr": 0.1}, path)
fresh = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 2))
fresh.load_state_dict(torch.load(path))
