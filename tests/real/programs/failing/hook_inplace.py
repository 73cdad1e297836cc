"""A backward hook for a heat map stands before an activation that works in place."""
import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(144, 2))
kept = []
model[0].register_full_backward_hook(lambda module, given, got: kept.append(got[0]))
scores = model(torch.randn(1, 1, 8, 8))
scores[0, 1].backward()
print(kept[0].shape)
