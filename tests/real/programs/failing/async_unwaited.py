"""A checkpoint is read while it is still being written."""
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn

dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
net = nn.Sequential(*(nn.Linear(512, 512) for _ in range(8)))
folder = tempfile.mkdtemp()
dcp.async_save({"model": net.state_dict()}, checkpoint_id=folder)
dcp.load({"model": net.state_dict()}, checkpoint_id=folder)
print("loaded")
dist.destroy_process_group()
