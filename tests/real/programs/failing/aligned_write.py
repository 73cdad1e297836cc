"""An offloaded weight is changed while it is lent, and the change is lost."""
import torch
from accelerate import cpu_offload
from accelerate.utils import align_module_device
from torch import nn

net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))
cpu_offload(net, torch.device("cpu"))
with torch.no_grad(), align_module_device(net[0]):
    net[0].weight = nn.Parameter(torch.zeros(8, 8))
with align_module_device(net[0]):
    assert net[0].weight.abs().sum() == 0, "the weight is as before"
