"""The optimizer was made before the weights were quantized."""
import torch
from torch import nn
from torchao.quantization import Int8WeightOnlyConfig, quantize_

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
quantize_(model, Int8WeightOnlyConfig())
x = torch.randn(16, 64)
first = None
for _ in range(4):
    loss = model(x).pow(2).mean()
    first = first if first is not None else loss.item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(first, loss.item())
