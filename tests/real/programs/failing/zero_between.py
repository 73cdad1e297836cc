"""Gradients are cleared between the backward pass and the step."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
before = model[0].weight.detach().clone()
for _ in range(5):
    x = torch.randn(16, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
assert not torch.equal(before, model[0].weight), "nothing was learned"
