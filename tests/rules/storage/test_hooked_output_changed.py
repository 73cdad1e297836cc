"""STO223: what a module with a full backward hook gave is changed in place."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.refused import ended, mended

SOURCE = """\
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU({inplace}))
model[0].register_full_backward_hook(lambda *_: None)
model(torch.ones(2, 4)).sum().backward()
"""
OWN = """\
import torch
class Shift(torch.nn.Module):
    def forward(self, x):
        {change}
        return x
net = torch.nn.Sequential(torch.nn.Linear(4, 4), Shift())
net[0].register_full_backward_hook(lambda *_: None)
net(torch.ones(2, 4)).sum().backward()
"""


def test_an_activation(tmp_path: Path) -> None:
    seen = ended(tmp_path, SOURCE.format(inplace="inplace=True"), "STO223")
    assert "`model.1` (ReLU) changes in place" in seen.only.message
    assert "`model.0` has a full backward hook" in seen.only.message
    mended(tmp_path, seen, "STO223")


def test_a_module_of_the_program(tmp_path: Path) -> None:
    seen = ended(tmp_path, OWN.format(change="x += 1"), "STO223")
    assert "`net.1` (Shift) changes in place" in seen.only.message
    assert "make a new tensor in `net.1`" in seen.only.fixes[0].description
    after = ended(tmp_path / "after", OWN.format(change="x = x + 1"), "STO223")
    assert after.error is None
