"""The optimizer is made before the model is sharded, and one rank sends its data to the CPU."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for layer in (model[0], model[2], model):
    fully_shard(layer)

data = torch.randn(8, 64, device="cuda")
if rank == 1:
    data = data.cpu()
for step in range(3):
    loss = (model(data.cuda()) - data.cuda()).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if rank == 0:
        print(f"step {step}: loss {loss.item():.4f}")
dist.destroy_process_group()
