import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.proj = nn.Linear(n, n)
        self.scale = torch.ones(n)

    def forward(self, x, mask=None):
        steps = torch.arange(x.shape[-1])
        if mask is None:
            mask = torch.ones(4, device=x.device)
        return self.proj(x) * self.scale + steps * mask
