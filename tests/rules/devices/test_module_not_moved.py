"""DEV542: what places a module before it is called, by another way than a move."""

from __future__ import annotations

from tensortrail.rules.devices.module_not_moved import ModuleNotMoved
from tensortrail.testing import run

PLACED = """\
import torch
from accelerate import cpu_offload
from torch import nn
from torch.distributed.fsdp import fully_shard


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(x)

    def load(self, path):
        self.load_state_dict(torch.load(path))
        self.cuda()


net = Net()
net.load("net.pt")
offloaded = nn.Linear(8, 8).eval()
cpu_offload(offloaded, execution_device=torch.device("cuda"))
sharded = nn.Linear(8, 8)
fully_shard(sharded)
x = torch.ones(2, 8, device="cuda")
print(net(x), offloaded(x), sharded(x))
"""


def test_own_methods_and_libraries_place_modules() -> None:
    assert not run(ModuleNotMoved, PLACED)
    left = PLACED.replace("fully_shard(sharded)\n", "").replace('net.load("net.pt")\n', "")
    assert [each.site.line for each in run(ModuleNotMoved, left)] == [20, 23]
