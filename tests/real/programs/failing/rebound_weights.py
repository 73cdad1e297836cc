"""The weights are moved in a loop, one by one."""
import torch, torch.nn as nn
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
for p in model.parameters():
    p = p.cuda()
x = torch.randn(4, 8).cuda()
print(model(x).sum())
