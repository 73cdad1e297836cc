"""An embedding that somebody sends to meta before the model is called."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(ids))


def offload(net: Net) -> None:
    net.embed.to("meta")


net = Net()
offload(net)
net(torch.tensor([1, 2, 3]))
