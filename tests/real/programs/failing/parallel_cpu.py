"""DataParallel is put around a model that is still on the CPU."""
import torch
from torch import nn

model = nn.DataParallel(nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 2)))
x = torch.randn(4, 8).cuda()
print(model(x).shape)
