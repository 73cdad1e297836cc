"""Averages that lie in the memory of their model."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

CODE = "STO216"
HEAD = """\
import copy
import torch
from torch import nn

net = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
STEPS = """\
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(4, 8)).pow(2).mean().backward()
    optimizer.step()
"""
BY_KEY = """\
    for key, value in net.state_dict().items():
        average[key].mul_(0.9).add_(value, alpha=0.1)
"""
IN_ORDER = """\
    with torch.no_grad():
        for mine, its in zip(average, net.parameters()):
            mine.lerp_(its, 0.1)
"""
IN_CLASS = """\
class Average:
    def __init__(self, model):
        self.shadow = {name: weight.data for name, weight in model.named_parameters()}  # flagged
    def update(self, model):
        for name, weight in model.named_parameters():
            self.shadow[name].copy_(0.9 * self.shadow[name] + 0.1 * weight.data)
            self.shadow[name].copy_(weight.data)
average = Average(net)
"""
BAD = {
    "by key": ("average = {k: v for k, v in net.state_dict().items()}  # flagged\n", BY_KEY),
    "the state dict": ("average = net.state_dict()  # flagged\n", BY_KEY),
    "a dict of it": ("average = dict(net.state_dict())  # flagged\n", BY_KEY),
    "the parameters": ("average = list(net.parameters())  # flagged\n", IN_ORDER),
    "their data": ("average = [weight.data for weight in net.parameters()]  # flagged\n", IN_ORDER),
    "a class": (IN_CLASS, "    average.update(net)\n"),
}


@pytest.mark.parametrize("name", BAD)
def test_memory_of_the_model(name: str, tmp_path: Path) -> None:
    made, update = BAD[name]
    seen = watched(tmp_path, HEAD + made + STEPS + update, CODE)
    assert ".weight` from its own memory" in seen.only.message
    runs_without_findings(tmp_path, seen.fixed, CODE)


GOOD = {
    "clones": ("average = {k: v.clone() for k, v in net.state_dict().items()}\n", BY_KEY),
    "a deepcopy": ("average = copy.deepcopy(net.state_dict())\n", BY_KEY),
    "an averaged model": (
        "average = torch.optim.swa_utils.AveragedModel(net)\n",
        "    average.update_parameters(net)\n",
    ),
    "decay by hand": (
        "",
        "    for weight in net.parameters():\n        weight.data.add_(weight.data, alpha=-0.01)\n",
    ),
    "doubled": ("kept = torch.ones(2)\n", "    kept.add_(kept)\n    kept.lerp_(kept * 2, 0.5)\n"),
}


@pytest.mark.parametrize("name", GOOD)
def test_memory_of_its_own(name: str, tmp_path: Path) -> None:
    made, update = GOOD[name]
    assert not watched(tmp_path, HEAD + made + STEPS + update, CODE).found
