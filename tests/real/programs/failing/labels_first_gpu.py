"""The model is split over two GPUs, and the labels lie on the first."""
import torch
from torch import nn


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8).to("cuda:0")
        self.head = nn.Linear(8, 20).to("cuda:1")

    def forward(self, ids, labels):
        logits = self.head(self.embed(ids).to("cuda:1"))
        return nn.functional.cross_entropy(logits.view(-1, 20), labels.view(-1))


ids = torch.randint(0, 20, (2, 6)).to("cuda:0")
Split()(ids, ids).backward()
