"""A model compiled as one graph is then offloaded with a hook."""
import torch
from accelerate import cpu_offload_with_hook
from torch import nn

net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
net, hook = cpu_offload_with_hook(net, torch.device("cuda"))
run = torch.compile(net, fullgraph=True, backend="eager")
print(run(torch.ones(3, 8)).shape)
