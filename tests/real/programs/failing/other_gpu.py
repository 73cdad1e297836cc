"""The old checkpoint goes to the second GPU, and there is one."""
import os
import tempfile

import torch
from torch import nn

path = os.path.join(tempfile.mkdtemp(), "rank1.pt")
device = torch.device("cuda:0")
model = nn.Linear(8, 8).to(device)
torch.save(model.state_dict(), path)
state = torch.load(path, map_location="cuda:1")
model.load_state_dict(state)
