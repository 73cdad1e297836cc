"""Ten small programs whose recordings two checkouts are compared by."""

from __future__ import annotations

from typing import NamedTuple


class Program(NamedTuple):
    source: str
    options: tuple[str, ...] = ()
    """Of `tensortrail trace`."""


MODEL = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 8), nn.Linear(8, 2)
    def forward(self, x):
        return self.head(self.embed(x))
model = Net()
"""
PROGRAMS = {
    "moves": Program(
        MODEL + "model.to('meta'); model.to_empty(device='cpu'); model.half().float()"
    ),
    "left_behind": Program(MODEL + "model.head.to('meta'); model(torch.tensor([1, 2]))"),
    "files": Program(
        MODEL + "torch.save(model.state_dict(), 'a.pt')\n"
        "model.load_state_dict(torch.load('a.pt', mmap=True), assign=True)\n"
        "from safetensors.torch import load_file, save_file\n"
        "save_file({k: v.clone() for k, v in model.state_dict().items()}, 'a.safetensors')\n"
        "print(sorted(load_file('a.safetensors')))"
    ),
    "storages": Program(
        "import torch\nx = torch.arange(8.0); s = x.untyped_storage(); n = s.nbytes()\n"
        "s.resize_(0); s.resize_(n); x.copy_(torch.ones(8)); y = torch.empty(4)\n"
        "print((y + 1).shape)\n"
        "x.data = torch.zeros(8); torch.utils.swap_tensors(x, torch.ones(2))"
    ),
    "threads": Program(
        "import threading, torch\ndef work(): print(torch.ones(3).to('meta').device)\n"
        "t = threading.Thread(target=work, name='one'); t.start(); t.join()"
    ),
    "training": Program(
        MODEL + "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for _ in range(2):\n    model(torch.tensor([1, 2])).sum().backward()\n"
        "    optimizer.step(); optimizer.zero_grad()",
        ("--ops", "1"),
    ),
    "offloaded": Program(
        MODEL + "from accelerate import cpu_offload\ncpu_offload(model, torch.device('cpu'))\n"
        "model(torch.tensor([1, 2]))"
    ),
    "compiled": Program(
        MODEL + "f = torch.compile(model, backend='eager'); print(f(torch.tensor([1, 2])).shape)"
    ),
    "two_devices": Program(
        MODEL
        + "model.to('cuda:0'); model.head.to('cuda:1'); model(torch.tensor([1], device='cuda'))",
        ("--rehearse", "cuda:2x1GiB"),
    ),
    "streams": Program(
        "import torch\nside = torch.cuda.Stream(); x = torch.ones(1000, device='cuda')\n"
        "with torch.cuda.stream(side):\n    y = x * 2\n"
        "x.add_(1); z = y.to('cpu', non_blocking=True)\n"
        "print(z.sum())",
        ("--rehearse", "cuda"),
    ),
}
