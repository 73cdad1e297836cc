"""State of an optimizer that has other parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import watched

CODE = "SHD446"
HEAD = """\
import torch
from torch import nn
def build(width):
    return nn.Sequential(nn.Linear(4, width), nn.Linear(width, 2))
def step(model, optimizer):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
model = build(8)
optimizer = torch.optim.Adam(model.parameters())
step(model, optimizer)
saved = optimizer.state_dict()
"""


def test_other_groups(tmp_path: Path) -> None:
    source = (
        "other = torch.optim.Adam(model[1].parameters())\nother.load_state_dict(saved)  # flagged\n"
    )
    seen = watched(tmp_path, HEAD + source, CODE)
    assert "made at program.py:12, has 1 group of 2, but the loaded state has 1 group of 4" in (
        seen.only.message
    )


def test_other_shapes(tmp_path: Path) -> None:
    source = (
        "model = build(16)\nother = torch.optim.Adam(model.parameters())\n"
        "other.load_state_dict(saved)  # flagged\nstep(model, other)\n"
    )
    seen = watched(tmp_path, HEAD + source, CODE)
    assert "the loaded state has the shape 8x4 for a parameter of shape 16x4" in seen.only.message


def test_another_order(tmp_path: Path) -> None:
    source = (
        "model = build(8)\nother = torch.optim.Adam([*model.parameters()][::-1])\n"
        "other.load_state_dict(saved)  # flagged\nstep(model, other)\n"
    )
    seen = watched(tmp_path, HEAD + source, CODE)
    assert "the saved shapes are those of its parameters in another order" in seen.only.message
    assert "in the order in which they were" in str(seen.only.fixes)


@pytest.mark.parametrize("kind", ["Adam", "SGD", "Adafactor", "AdamW"])
def test_what_fits(kind: str, tmp_path: Path) -> None:
    source = HEAD.replace("Adam", kind) + (
        f"model = build(8)\nother = torch.optim.{kind}(model.parameters())\n"
        "other.load_state_dict(saved)\nstep(model, other)\n"
    )
    assert not watched(tmp_path, source, CODE).found


def test_another_class(tmp_path: Path) -> None:
    source = (
        "other = torch.optim.SGD(model.parameters(), momentum=0.9)\nstep(model, other)\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "optimizer.load_state_dict(other.state_dict())  # flagged\n"
    )
    seen = watched(tmp_path, HEAD + source, CODE)
    assert "`Adam`, made at program.py:14, is given the state of another" in seen.only.message
    assert "it has `momentum_buffer` for each parameter, and no `step`" in seen.only.message
