"""DEV547 in a run: what `nn.Parameter(...)` made was moved, and is no parameter any more."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

CODE = "DEV547"
SOURCE = """\
import torch
from torch import nn
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1)).to("cuda")
net = Scaled()
torch.optim.SGD([net.scale], lr=0.1)  # flagged
"""


def test_the_parameter_is_made_of_what_was_moved(tmp_path: Path) -> None:
    seen = watched(tmp_path, SOURCE, CODE, rehearse="cuda")
    assert seen.only.message.startswith("`self.scale` is not a leaf: `Tensor.to` at program.py:6")
    assert '`nn.Parameter(torch.ones(1).to("cuda"))`' in seen.only.fixes[0].description
    runs_without_findings(tmp_path, seen.fixed, CODE, rehearse="cuda")
