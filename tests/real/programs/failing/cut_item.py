"""The losses of a batch are summed as numbers."""
import torch
from torch import nn

model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters())


def total_loss(outputs, targets):
    total = 0.0
    for output, target in zip(outputs, targets):
        total += nn.functional.mse_loss(output, target).item()
    return torch.tensor(total)


for _ in range(3):
    x = torch.randn(4, 8)
    loss = total_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
