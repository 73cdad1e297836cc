"""DEV514, `stale-device-attribute`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
MOVED = (
    "import torch\nfrom torch import nn\n\n\nclass Words(nn.Module):\n"
    '    def __init__(self, device="cuda"):\n        super().__init__()\n'
    "        self.table = nn.Embedding(9, 9)\n"
    "        self.device = device\n\n"
    "    def forward(self, x):\n        return self.table(torch.tensor(x).to(self.device))\n\n\n"
    "net = Words(){moved}\n"
)


@pytest.mark.parametrize(("moved", "expected"), [('.to("cpu")', WARNING), (".cuda()", NOTE)])
def test_a_module_that_is_moved_to_its_default(moved: str, expected: Severity) -> None:
    assert severity("DEV514", MOVED.format(moved=moved)) is expected


@pytest.mark.parametrize(
    ("given", "made", "expected"),
    [
        ("device='cuda'", "net = Encoder(8, device)\n    net.to(device)", Severity.NOTE),
        ("device='cuda'", "net = Encoder(8, device).to(device)", Severity.NOTE),
        (
            "device='cuda'",
            "net = Encoder(8, device=device)\n    net.to('cuda:1')",
            Severity.WARNING,
        ),
        ("device='cuda'", "net = Encoder(8)\n    net.to(device)", Severity.WARNING),
        ("device='cuda'", "net = None", Severity.NOTE),
        ("device=torch.device('cuda')", "net = None", Severity.NOTE),
        ("device", "net = None", Severity.NOTE),
        ("device=None", "net = None", Severity.NOTE),
    ],
)
def test_who_makes_a_module_may_move_it_where_it_was_made(
    given: str, made: str, expected: Severity
) -> None:
    source = f"""
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self, n, {given}):
        super().__init__()
        self.device = device
        self.embed = nn.Embedding(n, n)

    def forward(self, ids):
        return self.embed(ids + torch.arange(ids.shape[1], device=self.device))

def build(device):
    {made}
    return net
"""
    assert severity("DEV514", source) is expected
