"""The gradient scaler steps an optimizer whose weights the loss does not use."""
import torch
from torch import nn

device = "cuda"
encoder, head = nn.Linear(8, 16).to(device), nn.Linear(16, 2).to(device)
first = torch.optim.SGD(encoder.parameters(), lr=0.1)
second = torch.optim.SGD(head.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device)
x, y = torch.randn(4, 8, device=device), torch.randint(0, 2, (4,), device=device)
with torch.autocast(device, dtype=torch.float16):
    features = encoder(x).detach()
    loss = nn.functional.cross_entropy(head(features), y)
scaler.scale(loss).backward()
scaler.step(second)
scaler.step(first)
scaler.update()
