"""Loads that fail by what the dict holds: a state dict inside of it, or other shapes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

HEAD = """\
import torch
from torch import nn
def build(classes):
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, classes))
path = folder + "/model.pt"
"""
WHOLE = """\
torch.save({"epoch": 3, "weights": build(2).state_dict()}, path)
build(2).load_state_dict(torch.load(path))  # flagged
"""


def test_the_state_dict_lies_in_it(tmp_path: Path) -> None:
    seen = watched(tmp_path, HEAD + WHOLE, "SHD444")
    assert "under `'weights'`, as it was saved at program.py:6" in seen.only.message
    runs_without_findings(tmp_path, seen.fixed, "SHD444")


SHAPES = """\
torch.save(build(1000).state_dict(), path)
model = build(10)
model.load_state_dict(torch.load(path))  # flagged
"""


def test_other_shapes(tmp_path: Path) -> None:
    seen = watched(tmp_path, HEAD + SHAPES, "SHD445")
    assert "model.pt, saved at program.py:6, has other shapes than the model" in seen.only.message
    assert "`1.weight` 1000x8 for 10x8" in seen.only.message
    runs_without_findings(tmp_path, seen.fixed, "SHD445")


@pytest.mark.parametrize("code", ["SHD444", "SHD445"])
def test_what_fits(code: str, tmp_path: Path) -> None:
    source = (
        "state = {'epoch': 3, 'model': build(2).state_dict()}\n"
        "build(2).load_state_dict(state['model'])\n"
        "build(2).load_state_dict({**state['model'], 'more': {'a': 1}}, strict=False)\n"
    )
    assert not watched(tmp_path, HEAD + source, code).found


TIED = """\
from safetensors.torch import load_file, save_model
class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight
save_model(Speaker(), path)
Speaker().load_state_dict(load_file(path))  # flagged
"""


def test_one_name_of_tied_weights(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    seen = watched(tmp_path, HEAD + TIED, "SHD463")
    assert "`head.weight` is missing in what is loaded" in seen.only.message
    assert "as `embed.weight`" in seen.only.message


SPREAD = """\
torch.save({"weight": torch.ones(1, 4), "bias": torch.ones(1)}, path)
model, saved = nn.Linear(4, 8), torch.load(path)
with torch.no_grad():
    model.weight.copy_(saved["weight"])  # flagged
    model.bias.copy_(saved["bias"])
    model.weight.copy_(torch.ones(1, 4))
    model.weight[:1].copy_(saved["weight"])
"""


def test_a_row_of_a_file_that_fills_a_table(tmp_path: Path) -> None:
    message = watched(tmp_path, HEAD + SPREAD, "SHD445").only.message
    assert message.startswith("`Tensor.copy_` fills `Linear.weight`, 8x4, with 1x4 of model.pt")
