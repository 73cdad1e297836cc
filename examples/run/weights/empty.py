"""A model is built without memory, gets some, and is filled from a state dict: not all of it."""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4), persistent=False)

    def forward(self, x):
        return self.head(x) * self.scale


weights = Net().state_dict()
with torch.device("meta"):
    net = Net()
net.to_empty(device="cpu")
net.load_state_dict(weights)
net(torch.ones(1, 4))
