"""The model is loaded in bfloat16, and a new head is float32."""
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.base(x))


base = nn.Sequential(nn.Linear(8, 16), nn.ReLU()).to(torch.bfloat16)
model = Classifier(base)
out = model(torch.randn(4, 8, dtype=torch.bfloat16))
