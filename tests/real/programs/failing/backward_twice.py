"""The graph of one loss is used by a second backward."""
import torch
from torch import nn

encoder, head_a, head_b = nn.Linear(8, 16), nn.Linear(16, 2), nn.Linear(16, 1)
params = [*encoder.parameters(), *head_a.parameters(), *head_b.parameters()]
optimizer = torch.optim.SGD(params, lr=0.1)
for _ in range(2):
    x = torch.randn(4, 8)
    features = torch.relu(encoder(x))
    loss_a = nn.functional.cross_entropy(head_a(features), torch.zeros(4, dtype=torch.long))
    optimizer.zero_grad()
    loss_a.backward()
    loss_b = head_b(features).pow(2).mean()
    loss_b.backward()
    optimizer.step()
