"""A distributed checkpoint is written, awaited, and read into another model"""
import tempfile
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

def made(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, torch.optim.AdamW(model.parameters())

model, optimizer = made(0)
model(torch.ones(3, 4)).sum().backward()
optimizer.step()
with tempfile.TemporaryDirectory() as folder:
    weights, state = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=folder)
    other, its = made(1)
    weights, state = get_state_dict(other, its)
    dcp.load({"model": weights, "optimizer": state}, checkpoint_id=folder)
    set_state_dict(other, its, model_state_dict=weights, optim_state_dict=state)
print(all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters())))
