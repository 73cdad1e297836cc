"""Checkpoints with objects of classes, which the safe loader refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

CODE = "SHD447"
HEAD = """\
import argparse
import fractions
import torch
from torch import nn
model = nn.Linear(4, 2)
"""


def test_a_whole_module(tmp_path: Path) -> None:
    save = 'torch.save(nn.Sequential(model), "m.pt")\n'
    seen = watched(tmp_path, HEAD + save + 'torch.load("m.pt")  # flagged\n', CODE)
    said = "m.pt, saved at program.py:6, holds an object of `torch.nn.modules.container.Sequential`"
    assert said in seen.only.message
    assert "`state_dict()`" in seen.only.fixes[0].description
    assert 'torch.load("m.pt", weights_only=False)' in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, CODE)


@pytest.mark.parametrize(
    ("key", "value", "kind", "advice"),
    [
        ("options", "argparse.Namespace(lr=0.1)", "argparse.Namespace", "vars(...)"),
        ("best", "__import__('numpy').float64(0.5)", "numpy.float64", ".item()"),
        ("ratio", "fractions.Fraction(1, 3)", "fractions.Fraction", "their fields"),
    ],
)
def test_an_object_beside_the_weights(
    key: str, value: str, kind: str, advice: str, tmp_path: Path
) -> None:
    save = f'torch.save({{"model": model.state_dict(), "{key}": {value}}}, "m.pt")\n'
    load = 'torch.load("m.pt", weights_only=True)  # flagged\n'
    seen = watched(tmp_path, HEAD + save + load, CODE)
    assert f"holds an object of `{kind}` under `'{key}'`" in seen.only.message
    assert advice in seen.only.fixes[0].description
    runs_without_findings(tmp_path, seen.fixed, CODE)


def test_no_edit_for_a_file_of_somebody_else(tmp_path: Path) -> None:
    """The safe loader is not switched off for what another program has written."""
    save = 'torch.save(model, "m.pt")\n'
    moved = 'import os\nos.rename("m.pt", "other.pt")\n'
    seen = watched(tmp_path, HEAD + save + moved + 'torch.load("other.pt")  # flagged\n', CODE)
    assert "other.pt holds an object of `torch.nn.modules.linear.Linear`" in seen.only.message
    assert [fix.edits for fix in seen.only.fixes] == [()]


@pytest.mark.parametrize(
    "program",
    [
        'torch.save(model.state_dict(), "m.pt")\ntorch.load("m.pt")\n',
        'torch.save(model, "m.pt")\ntorch.load("m.pt", weights_only=False)\n',
        'torch.save(model, "m.pt")\n'
        'try:\n    torch.load("m.pt")\n'
        'except Exception:\n    torch.load("m.pt", weights_only=False)\n'
        "model(torch.ones(1, 4))\n",
    ],
)
def test_what_is_read(program: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, HEAD + program, CODE).found
