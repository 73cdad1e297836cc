"""optimizer state loaded before the model goes to the GPU"""
import os
import tempfile

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def build():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
    return net, torch.optim.AdamW(net.parameters(), lr=1e-3)


def step(net, optimizer, device):
    loss = net(torch.randn(8, 16, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
model, opt = build()
step(model, opt, "cpu")
torch.save({"model": model.state_dict(), "optim": opt.state_dict()}, path)

fresh, opt = build()
saved = torch.load(path)
fresh.load_state_dict(saved["model"])
opt.load_state_dict(saved["optim"])
fresh.to(device)
print("resumed", step(fresh, opt, device) < 10)
