"""NEW319: an optimizer of a model that has no parameters to give."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.refused import ended, mended

HIDDEN = """\
import torch
from torch import nn
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4) for _ in range(3)]
tower = Tower()
torch.optim.Adam(tower.parameters())
"""
FROZEN = """\
import torch
model = torch.nn.Linear(4, 4)
model.requires_grad_(False)
torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
"""
SPENT = """\
import torch
model = torch.nn.Linear(4, 4)
params = filter(lambda p: p.requires_grad, model.parameters())
print(sum(p.numel() for p in params))
torch.optim.Adam(params)
"""


def test_layers_in_a_list(tmp_path: Path) -> None:
    seen = ended(tmp_path, HIDDEN, "NEW319")
    assert "`tower` (Tower) has its 3 layers in `tower.layers`" in seen.only.message
    assert "program.py:6" in seen.only.message
    assert "nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])" in seen.fixed
    mended(tmp_path, seen, "NEW319")


def test_all_frozen(tmp_path: Path) -> None:
    seen = ended(tmp_path, FROZEN, "NEW319")
    assert "all 2 of `model` (Linear) are frozen at program.py:3" in seen.only.message
    after = ended(tmp_path / "after", FROZEN.replace("False", "True"), "NEW319")
    assert after.error is None


def test_an_iterator_that_was_gone_through(tmp_path: Path) -> None:
    seen = ended(tmp_path, SPENT, "NEW319")
    assert "is given a `filter` that was gone through before" in seen.only.message
