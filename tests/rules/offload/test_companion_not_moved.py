"""OFF107, `companion-not-moved`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severity, severity_in_package


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.nonzero(self.mask).to(device)", None),
        ("torch.nonzero(self.mask)", Severity.WARNING),
        ("torch.nonzero(self.mask).to(self.device)", Severity.WARNING),
    ],
)
def test_rows_that_are_put_where_they_are_asked_for(made: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\n\nclass Rows:\n    def __init__(self, mask: torch.Tensor):\n"
        "        self.mask, self.rows, self.device = mask, None, mask.device\n\n"
        f"    def split(self, device='cpu'):\n        self.rows = {made}\n"
        "        return self.rows\n\n"
        "    def to(self, device):\n        self.mask = self.mask.to(device)\n        return self\n"
    )
    assert severity("OFF107", source) is expected


@pytest.mark.parametrize(
    ("order", "expected"), [("memory_format=order", None), ("device=order", Severity.WARNING)]
)
def test_a_parameter_in_another_order_of_memory(order: str, expected: Severity | None) -> None:
    source = (
        HEAD + "class Norm(nn.GroupNorm):\n    def forward(self, x):\n"
        "        return super().forward(x.float())\n\n\n"
        "class Scale(nn.Module):\n    def __init__(self, n, order):\n"
        "        super().__init__()\n        self.norm = Norm(2, n)\n"
        f"        self.gamma = nn.Parameter(0.1 * torch.ones([1, n, 1, 1])).to({order})\n\n"
        "    def forward(self, x):\n        return self.norm(x) * self.gamma\n"
    )
    assert severity("OFF107", source) in (expected, Severity.NOTE if expected else None)


NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
GRID = (
    "import torch\nfrom torch import nn\n\n\nclass Loss(nn.Module):\n    def place(self, n):\n"
    "        u = torch.arange(n).cuda()\n        self.rows = torch.stack((u, u))\n\n"
    "    def lifted(self, depth: torch.Tensor):\n        return depth * self.rows\n\n"
    "    def forward(self, depth: torch.Tensor):\n        {first}\n"
    "        return self.lifted(depth).mean()\n\n\nnet = Loss().cuda()\n"
)


@pytest.mark.parametrize(
    ("first", "expected"),
    [("self.place(len(depth))", NOTE), ("if self.new: self.place(len(depth))", ERROR)],
)
def test_an_attribute_that_is_made_each_time(first: str, expected: Severity) -> None:
    assert severity("OFF107", GRID.format(first=first)) is expected


KEPT = """
import torch
from torch import nn

class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.scale = torch.arange(3)

    def forward(self, x: torch.Tensor):
        return x * self.scale
"""


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("def load(device):\n    with torch.device(device):\n        return Gate()\n",
         Severity.NOTE),
        ("def load(target_device):\n    with target_device:\n        return Gate()\n",
         Severity.NOTE),
        ("def load():\n    with torch.device('meta'):\n        return Gate()\n", Severity.WARNING),
        ("def load(device):\n    return Gate().to(device)\n", Severity.WARNING),
        ("from pkg.own import Gate\ntorch.set_default_device('cuda')\n", Severity.NOTE),
        ("from pkg.own import Padded\ntorch.set_default_device('cuda')\n", Severity.WARNING),
    ],
)  # fmt: skip
@pytest.mark.parametrize("code", ["OFF107", "DEV525"])
def test_where_modules_are_built(tmp_path: Path, code: str, other: str, expected: Severity) -> None:
    assert severity_in_package(tmp_path, code, KEPT, other=other) is expected


HELD = """
import torch
from torch import nn

class Gate(nn.Module):
    def __init__(self, rows, device):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.scale = {value}

    def forward(self, x: torch.Tensor):
        return x * self.scale
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("torch.arange(3)", Severity.WARNING),
        ("torch.arange(3).to(device)", Severity.NOTE),
        ("torch.arange(3, device=device)", Severity.NOTE),
        ("torch.arange(3, device='cuda:0')", Severity.WARNING),
        ("nn.Parameter(torch.ones(3, device=device)).float()", None),
    ],
)
def test_a_plain_attribute_that_is_made_where_told(value: str, expected: Severity | None) -> None:
    assert severity("OFF107", HELD.format(value=value)) is expected


@pytest.mark.parametrize(
    ("first", "expected"),
    [("torch.tensor([0])", Severity.NOTE), ("torch.linspace(0, 1, 3)", Severity.WARNING)],
)
def test_a_value_that_stands_for_none_until_it_is_made(first: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Mean(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = nn.Linear(n, n)
        self.table = {first}

    def _make(self, n):
        self.table = torch.linspace(0, 1, n)

    def forward(self, x: torch.Tensor):
        return torch.matmul(self.mix(x), self.table)
"""
    assert severity("OFF107", source) is expected


def test_a_helper_of_to_moves_the_rest() -> None:
    source = """
    import torch

    class Batch:
        def __init__(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor):
            self.x, self.y, self.z = x, y, z

        def _labels_to(self, device):
            {moves}

        def to(self, device):
            self._labels_to(device)
            self.x = self.x.to(device)
            return self
    """
    both = "self.y, self.z = self.y.to(device), self.z.to(device)"
    assert severity("OFF107", source.format(moves=both)) is None
    assert severity("OFF107", source.format(moves="pass")) is Severity.WARNING


@pytest.mark.parametrize(
    ("made", "expected"),
    [("other.up.weight.t()", Severity.NOTE), ("torch.ones(8, 8)", Severity.ERROR)],
)
def test_what_is_made_of_given_weights_lies_where_these_are(made: str, expected: Severity) -> None:
    source = f"""
    import torch
    from torch import nn

    class Joined(nn.Module):
        def __init__(self, other: nn.Module):
            super().__init__()
            up = {made}
            self.norm = nn.LayerNorm(8)
            self.joined = torch.einsum("ab,bc->ac", up, up)

        def forward(self, x):
            return self.norm(x) @ self.joined

    def run(other, x):
        return Joined(other).cuda()(x.cuda())
    """
    assert severity("OFF107", source) is expected
