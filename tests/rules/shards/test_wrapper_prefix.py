"""Checkpoints of wrappers, loaded into the module inside."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import watched

SAVED = """\
import torch
from torch import nn
def build():
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
path = folder + "/model.pt"
model = nn.DataParallel(build())
torch.save({"epoch": 3, "state_dict": model.state_dict()}, path)
"""
HIDDEN = """\
weights = torch.load(path)["state_dict"]
build().load_state_dict(weights, strict=False)  # flagged
"""


def test_a_load_that_is_not_strict_hides_it(tmp_path: Path) -> None:
    seen = watched(tmp_path, SAVED + HIDDEN, "SHD409")
    assert "4 weights stay as they were, and `strict=False` hides it" in seen.only.message
    assert "saved at program.py:7" in seen.only.message
    assert '"state_dict": model.module.state_dict()' in seen.fixed


@pytest.mark.parametrize(
    "load",
    [
        "nn.DataParallel(build()).load_state_dict(weights, strict=False)\n",
        "inner = {name.removeprefix('module.'): each for name, each in weights.items()}\n"
        "build().load_state_dict(inner | {'extra': torch.ones(1)}, strict=False)\n",
        "head = {'0.weight': weights['module.0.weight'], 'other': torch.ones(1)}\n"
        "build().load_state_dict(head, strict=False)\n",
    ],
)
def test_what_fits_is_loaded(tmp_path: Path, load: str) -> None:
    weights = 'weights = torch.load(path)["state_dict"]\n'
    watched(tmp_path, f"{SAVED}{weights}{load}", "SHD409")
