"""DEV545, `parameter-lost-by-move`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severity


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        ("cuda()", Severity.ERROR),
        ("to('cuda:0')", Severity.ERROR),
        ("to(torch.device('cuda'))", Severity.ERROR),
        ("to(device)", Severity.WARNING),
    ],
)
def test_a_chosen_device_may_be_the_cpu(move: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, n, device):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n)).{move}
"""
    assert severity("DEV545", source) is expected


UNUSED = """
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n){given}).cuda()

    def forward(self, x):
        {step}
        return x
"""


@pytest.mark.parametrize(
    ("given", "step", "expected"),
    [
        ("", "x = x * self.scale", Severity.ERROR),
        (", requires_grad=False", "x = x * self.scale", Severity.WARNING),
        ("", "self.scale = x.mean()\n        x = x * self.scale", Severity.NOTE),
        ("", "x = x * self.scale; self.scale = x.mean()", Severity.ERROR),
        ("", "x = x * 2", Severity.NOTE),
    ],
)
def test_a_lost_parameter_that_nobody_misses(given: str, step: str, expected: Severity) -> None:
    assert severity("DEV545", UNUSED.format(given=given, step=step)) is expected


LOST = (
    HEAD + "class Scale(nn.Module):\n    def __init__(self, n, {given}):\n"
    "        super().__init__()\n        self.scale = nn.Parameter(torch.ones(n)).to(device)\n"
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("device", Severity.WARNING), ("other_device, device", Severity.NOTE)],
)
def test_a_parameter_for_one_of_two_devices(given: str, expected: Severity) -> None:
    assert severity("DEV545", LOST.format(given=given)) is expected


@pytest.mark.parametrize(
    ("there", "expected"),
    [("self.linear.weight", Severity.NOTE), ("other.weight", Severity.WARNING)],
)
def test_a_move_to_a_layer_made_beside_it(there: str, expected: Severity) -> None:
    source = f"""
    import torch
    from torch import nn

    class Mixed(nn.Module):
        def __init__(self, other):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.mix = nn.Parameter(torch.ones(3)).to({there})

        def forward(self, x):
            return self.linear(x) * self.mix
    """
    assert severity("DEV545", source) is expected
