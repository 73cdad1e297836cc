"""The offload folder is relative, and the program changes its folder afterwards."""
import os

import torch
from accelerate import disk_offload
from torch import nn

os.mkdir("work")
os.chdir("work")
net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))
disk_offload(net, "offload", execution_device=torch.device("cpu"))
os.chdir("..")
print(net(torch.ones(3, 8)).shape)
