"""Modules that a class keeps in lists: what each of them takes has to lie where its weights are."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

MODEL = """
import torch
from torch import nn

class Stack(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        {made}

    def forward(self, x):
        {loop}
            hidden = torch.zeros(1, 3, 4)
            x, _ = layer(x, {passed})
        return x
"""
APPENDED = """self.layers = []
        for n in sizes:
            layer = nn.GRU(n, n)
            self.layers.append(layer)
            self.add_module(str(n), layer)"""


@pytest.mark.parametrize(
    ("made", "loop"),
    [
        ("self.layers = nn.ModuleList([nn.GRU(n, n) for n in sizes])", "for layer in self.layers:"),
        ("self.layers = nn.ModuleList([nn.GRU(1, 1)])", "for i, layer in enumerate(self.layers):"),
        (APPENDED, "for n, layer in zip((1, 2), self.layers):"),
        (APPENDED.replace("[]", "nn.ModuleList()"), "for layer in self.layers:"),
        (
            'self.layers = nn.ModuleDict({"a": nn.GRU(1, 1)})',
            "for name, layer in self.layers.items():",
        ),
    ],
)
def test_each_member_takes_what_lies_with_its_weights(made: str, loop: str) -> None:
    source = MODEL.format(made=made, loop=loop, passed="hidden")
    assert severity("DEV521", source) is Severity.WARNING
    assert severity("DEV521", source.replace("hidden)", "hidden.to(x.device))")) is None


def test_a_state_is_a_tensor_or_a_tuple_of_them() -> None:
    states = "(hidden, hidden) if self.cells else hidden"
    source = MODEL.format(made=APPENDED, loop="for layer in self.layers:", passed=states)
    assert severity("DEV521", source) is Severity.WARNING


@pytest.mark.parametrize(
    "made",
    [
        "self.layers = [nn.GRU(n, n) for n in sizes]",  # no move reaches these
        "self.layers = nn.ModuleList([nn.GRU(1, 1), nn.ReLU()])",
    ],
)
def test_nothing_is_said_of_lists_that_torch_does_not_know_or_that_are_mixed(made: str) -> None:
    source = MODEL.format(made=made, loop="for layer in self.layers:", passed="hidden")
    assert severity("DEV521", source) is None
