"""DEV521, `factory-without-device`: models that are given, and what unknown functions make."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.judged import findings, found_in_package

_LOSS = """
import torch
from torch import nn

class Ratio:
    def __init__(self, net: nn.Module):
        self.net = net

    def to(self, device):
        self.net = self.net.to(device)
        return self

    def loss(self, theta: torch.Tensor, x: torch.Tensor):
        logits = {made}
        likelihood = torch.sigmoid(logits).squeeze()
        labels = torch.ones(2 * len(x))
        return nn.BCELoss()(likelihood, labels)
"""
"""The class moves itself, so that what its methods are given is mostly on its device."""


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        ("self.judge(theta, x)", [16]),
        ("self.judge(theta)[0]", [16]),
        ("self.judge(len(theta))", []),  # of a number: it may be made anywhere
        ("self.judge(theta, torch.zeros(3))", []),
        ("self.judge(theta).cpu()", []),
    ],
)
def test_what_an_unknown_function_makes(made: str, lines: list[int]) -> None:
    assert [each.site.line for each in findings("DEV521", _LOSS.format(made=made))] == lines


def test_two_ways_to_make_it() -> None:
    source = _LOSS.format(
        made="self.judge(theta)\n        if not len(x):\n            logits = {other}"
    )
    again = source.format(other="self.other(theta, x)")
    assert [each.site.line for each in findings("DEV521", again)] == [18]
    assert not findings("DEV521", source.format(other="self.other()"))


def test_a_class_that_does_not_move_itself() -> None:
    source = _LOSS.format(made="self.judge(theta, x)").replace("def to(", "def place(")
    assert not [each for each in findings("DEV521", source) if each.told]


_GIVEN = """
import torch

def measured(model, n):
    {asked}
    ids = torch.zeros(1, n)
    return {run}, place
"""


@pytest.mark.parametrize(
    ("asked", "run", "count"),
    [
        ("place = next(model.parameters()).device", "model(ids)", 1),
        ("place = next(model.parameters()).device", "model.forward(ids)", 1),
        ("place = next(model.parameters()).device", "model.generate(ids)", 1),
        ("place = next(model.parameters()).device", "model.predict(ids)", 0),  # it may move them
        ("place = next(model.parameters()).device", "model(ids.to(place))", 0),
        ("place = model.eval()", "model(ids)", 0),  # nothing says that it is on a GPU
    ],
)
def test_a_model_that_is_given(asked: str, run: str, count: int) -> None:
    found = findings("DEV521", _GIVEN.format(asked=asked, run=run))
    assert len(found) == count
    assert all("next(model.parameters()).device" in str(each.fixes) for each in found)


_KEPT = """
import torch

class Runner:
    def __init__(self, model, device):
        self.model = model
        {moved}
        self.model.eval()

    def run(self, n):
        return self.model(torch.zeros(1, n))
"""


@pytest.mark.parametrize(
    ("moved", "count"),
    [
        ("self.model.to(device)", 1),
        ("self.model.cuda()", 1),
        ("self.model.cpu()", 0),
        ("self.moved = self.model.to(device)", 0),
        ("self.model.to(device); self.model.cpu()", 0),
        ("self.device = device", 0),
    ],
)
def test_a_model_that_its_keeper_moves_in_place(moved: str, count: int) -> None:
    assert len(findings("DEV521", _KEPT.format(moved=moved))) == count


_HELPER = """
import torch
from torch import nn
from pkg.other import rows_of

def blank(n):
    return torch.zeros(n)

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.proj = nn.Linear(n, n)

    def forward(self, x):
        rows = rows_of(x{given})
        return self.proj(x) + rows
"""


@pytest.mark.parametrize(
    ("given", "body", "count"),
    [
        (".shape[0]", "return torch.arange(x).float()", 1),
        (".shape[0]", "rows = torch.arange(x)\n    return rows * 2", 1),
        ("", "return torch.arange(x.shape[0], device=x.device)", 0),
        ("", "return torch.arange(x.shape[0]).to(x)", 0),
        (".shape[0]", "print(torch.arange(x))", 0),  # gives nothing back
    ],
)
def test_what_a_function_of_another_file_makes(
    tmp_path: Path, given: str, body: str, count: int
) -> None:
    other = f"import torch\n\n\ndef rows_of(x):\n    {body}\n"
    found = found_in_package(tmp_path, "DEV521", _HELPER.format(given=given), other=other)
    assert len(found) == count


_OPTIONS = """
import torch

def scaled(x: torch.Tensor, options: dict, **kwargs):
    first = x.new_zeros(3)
    weight = {taken}
    return x * weight + first
"""


@pytest.mark.parametrize(
    ("taken", "count"),
    [
        ("options.get('weight', torch.ones(3))", 1),
        ("kwargs.pop('weight', torch.ones(3))", 1),
        ("options.get('weight', torch.ones(3, device=x.device))", 0),
        ("options.get('weight', torch.ones(3)).to(x)", 0),
        ("options.get('weight', 1.0)", 0),
        ("options.get('weight', torch.tensor(1.0))", 0),  # a number may lie anywhere
        ("options.find('weight', torch.ones(3))", 0),
    ],
)
def test_what_is_taken_where_there_is_no_such_key(taken: str, count: int) -> None:
    assert len(findings("DEV521", _OPTIONS.format(taken=taken))) == count
