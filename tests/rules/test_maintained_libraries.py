"""What maintained libraries do rightly, with a neighbour that is still reported."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

READ = {
    "DEV504": """
import torch

class Solver:
    def __init__(self, n):
        self.h = torch.zeros(n, n)

    def solve(self, w):
        h = self.h
        self.h.cpu()
        {}
        del self.h
        return w @ h
""",
    "DEV548": """
def run(data, {}=None, device="cpu"):
    x = data.to(device)
    return run(x, data)

print(run(1, device="cuda"), run(2, device="cuda"))
""",
    "DEV595": """
class Base:
    def start(self, path, offload_state_to_cpu):
        return path, offload_state_to_cpu

    def again(self, path):
        return self.start(path)

class Below({}):
    def start(self, path, offload_state_to_cpu=False):
        return path
""",
    "OFF112": """
def context_of(owner, lengths, device):
    return owner, lengths, device

class Layer:
    def forward(self, hidden, lengths, device):
        return context_of(self, {})

Layer().forward(1, 2, 3)
""",
    "OFF114": """
def scaled(search, rows, low_memory, device):
    if not low_memory:
        rows = rows.to(device)
    scales = search(rows)
    rows = rows.cpu()
    return scales{}
""",
    "SHD431": """
import torch.distributed as dist

def serve(rank, things):
    if rank == 0:
        dist.broadcast_object_list(things, src=0)

def wait(rank, things):
    if rank == 0:
        return
    else:
        while True:
            {}(things, src=0)
""",
}


@pytest.mark.parametrize(
    ("code", "silent", "said"),
    [
        ("DEV504", "pass", "print(self.h)"),
        ("DEV548", "run", "other"),
        ("DEV595", "Base", "object"),
        ("OFF112", "lengths, device", "device, lengths"),
        ("OFF114", "", " + rows"),
        ("SHD431", "dist.broadcast_object_list", "print"),
    ],
)
def test_of_maintained_libraries(code: str, silent: str, said: str) -> None:
    quiet = severity(code, READ[code].format(silent))
    assert quiet in (None, Severity.NOTE)
    assert severity(code, READ[code].format(said)) not in (None, Severity.NOTE)
