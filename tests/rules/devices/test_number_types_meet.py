"""Floating-point operands of different types, and optimizers of what is no leaf."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

CODE = "DEV614"
HEAD = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 4), nn.Linear(4, 2)
    def forward(self, x):
        h = self.body(x)
        return self.head(h){mark}
model = Net()
"""


def test_a_layer_that_was_not_converted(tmp_path: Path) -> None:
    source = HEAD.format(mark="  # flagged") + (
        "model.body.to(torch.bfloat16)\nmodel(torch.ones(2, 8, dtype=torch.bfloat16))\n"
    )
    seen = watched(tmp_path, source, CODE)
    assert "head.weight` is float32" in seen.only.message
    assert "bfloat16" in seen.only.message
    assert "head.to(torch.bfloat16)`" in seen.only.fixes[0].description


def test_an_input_of_the_wrong_type(tmp_path: Path) -> None:
    source = (
        "import torch\nx = torch.ones(2, 8)\nmodel = torch.nn.Linear(8, 2)\n"
        "model.to(torch.bfloat16)\nmodel(x)  # flagged\n"
    )
    seen = watched(tmp_path, source, CODE)
    assert "`x` is float32" in seen.only.message
    assert "by `Tensor.to` at program.py:4" in seen.only.message


@pytest.mark.parametrize(
    "use",
    [
        "model.to(torch.bfloat16)(torch.ones(2, 8, dtype=torch.bfloat16))\n",
        "torch.ones(2) + torch.ones(2, dtype=torch.bfloat16)\n",
        "try:\n    model(torch.ones(2, 3))\nexcept RuntimeError:\n    pass\n",
    ],
)
def test_types_that_fit(use: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, HEAD.format(mark="") + use, CODE).found


LEAF = """\
import torch
image = torch.rand(3, 8, requires_grad=True){move}
optimizer = torch.optim.Adam([image], lr=0.1)  # flagged
for _ in range(2):
    optimizer.zero_grad()
    image.pow(2).mean().backward()
    optimizer.step()
"""


def test_an_optimizer_refuses_what_was_moved(tmp_path: Path) -> None:
    seen = watched(tmp_path, LEAF.format(move=".to('cuda')"), "DEV547", rehearse="cuda")
    assert "`image` is not a leaf" in seen.only.message
    runs_without_findings(tmp_path, seen.fixed, "DEV547", rehearse="cuda")


def test_a_leaf_is_taken(tmp_path: Path) -> None:
    source = LEAF.format(move="").replace("  # flagged", "")
    assert not watched(tmp_path, source, "DEV547").found


def test_a_model_that_was_converted_before_it_was_moved(tmp_path: Path) -> None:
    source = (
        "import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(8, 2)).cuda()\n"
        "model.half()\nmodel.cpu()\nmodel(torch.ones(2, 8))  # flagged\n"
    )
    seen = watched(tmp_path, source, CODE, rehearse="cuda")
    assert "is float16, made so at program.py:3" in seen.only.message
    assert "[0].to(torch.float32)`" in seen.only.fixes[0].description


def test_rows_of_numpy_are_converted_first(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    assert numpy.ones(1).dtype == "float64"
    source = (
        "import numpy, torch\nmodel = torch.nn.Linear(8, 2)\n"
        "x = torch.from_numpy(numpy.ones((2, 8))){cast}\nmodel(x){mark}\n"
    )
    seen = watched(tmp_path, source.format(cast="", mark="  # flagged"), CODE)
    change = seen.only.fixes[0].description
    assert change.startswith("NumPy counts in float64")
    assert "`.float()` of what it is given, or `" in change
    runs_without_findings(tmp_path, source.format(cast=".float()", mark=""), CODE)


def test_what_brought_a_type_into_the_run(tmp_path: Path) -> None:
    source = (
        "import torch\nmodel = torch.nn.Linear(8, 2)\n"
        "window = torch.ones(8, dtype=torch.float64)\n"
        "def windowed(x):\n    return x * window * 2\n"
        "model(windowed(torch.ones(2, 8)))  # flagged\n"
    )
    seen = watched(tmp_path, source, CODE)
    assert "(the first float64 tensor of this run: `torch.ones` at program.py:3)" in (
        seen.only.message
    )
    assert "weight` is float32, made at program.py:2" in seen.only.message


def test_what_the_program_made_follows_what_was_computed(tmp_path: Path) -> None:
    source = (
        "import torch\nmodel = torch.nn.Linear(4, 4).bfloat16()\ncache = torch.zeros(8, 4)\n"
        "keys = model(torch.ones(1, 4, dtype=torch.bfloat16))\n"
        "cache.index_copy_(0, torch.tensor([0]), keys)  # flagged\n"
    )
    seen = watched(tmp_path, source, CODE)
    assert seen.only.fixes[0].description == (
        "make `cache` with `dtype=torch.bfloat16` at program.py:3"
    )
