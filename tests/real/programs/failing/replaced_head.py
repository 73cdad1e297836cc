"""A head is replaced after the model was offloaded."""
import torch
from accelerate import cpu_offload
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


net = Net()
cpu_offload(net, torch.device("cuda"))
net.head = nn.Linear(8, 2)
print(net(torch.ones(3, 8)).shape)
