"""What cpu_offload_with_hook returns is taken for the model."""
import torch
from accelerate import cpu_offload_with_hook
from torch import nn

net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))
net = cpu_offload_with_hook(net, torch.device("cuda"))
print(net(torch.ones(3, 8)).shape)
