"""Features are detached in a helper, and the decoder has no weights."""
import torch
from torch import nn


def normalize(h):
    h = h.detach()
    return h / h.norm(dim=-1, keepdim=True)


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, a, b):
        return normalize(self.encoder(a)) @ normalize(self.encoder(b)).T


model = Contrast()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    logits = model(torch.randn(4, 8), torch.randn(4, 8))
    loss = nn.functional.cross_entropy(logits, torch.arange(4))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
