"""The losses of two halves lie on two GPUs."""
import torch
from torch import nn

front = nn.Linear(8, 8).to("cuda:0")
back = nn.Linear(8, 1).to("cuda:1")
optimizer = torch.optim.SGD([*front.parameters(), *back.parameters()], lr=0.1)
for _ in range(2):
    hidden = front(torch.randn(4, 8, device="cuda:0"))
    penalty = hidden.pow(2).mean()
    out = back(hidden.to("cuda:1"))
    main = out.pow(2).mean()
    loss = main + penalty
    loss.backward()
    optimizer.step()
