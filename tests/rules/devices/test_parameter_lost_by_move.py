"""DEV545, `parameter-lost-by-move`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severities_in_project, severity


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


SCALE = (
    HEAD + "class Scale(nn.Module):\n    def __init__(self, n, device{usual}):\n"
    "        super().__init__()\n        self.place = device\n"
    "        self.scale = nn.Parameter({made}).to(self.place)\n\n"
    "    def forward(self, x):\n        return x * self.scale\n"
)
MADE = "torch.ones(n)"
OTHER = "import torch\nfrom net.scale import Scale\n\nGPU = torch.device('cuda')\nprint({call})\n"


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("usual", "call", "expected"),
    [
        ("", "Scale(2, GPU)", Severity.WARNING),
        ("='cpu'", "Scale(2)", Severity.NOTE),
        ("=torch.device('cpu')", "Scale(2)", Severity.NOTE),
        ("='cpu'", "Scale(2, device=GPU)", Severity.WARNING),
        ("='cuda'", "Scale(2)", Severity.WARNING),
    ],
)
def test_callers_say_where_the_parameter_goes(
    tmp_path: Path, usual: str, call: str, expected: Severity
) -> None:
    scale = SCALE.format(usual=usual, made=MADE)
    files = {"scale.py": scale, "run.py": OTHER.format(call=call)}
    assert severities_in_project(tmp_path, files, "DEV545") == [expected]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (MADE, Severity.WARNING),
        ("padded(torch.ones(n, device=device))", Severity.NOTE),
        ("padded(torch.ones(n))", Severity.WARNING),
        ("torch.ones(n, device=device)", None),
    ],
)
def test_a_parameter_computed_of_what_is_there(made: str, expected: Severity | None) -> None:
    assert severity("DEV545", SCALE.format(usual="", made=made)) is expected


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
