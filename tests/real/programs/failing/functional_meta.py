"""An ensemble runs through a skeleton on meta, and the buffers are left out."""
import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

nets = [nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval() for _ in range(3)]
params, buffers = stack_module_state(nets)
base = copy.deepcopy(nets[0]).to("meta")


def run(p, x):
    return functional_call(base, p, (x,))


x = torch.ones(5, 4)
out = vmap(run, (0, None))(params, x)
print(out.sum().item())
