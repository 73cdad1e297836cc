"""Attributes that a module makes when it first needs them."""

from __future__ import annotations

import ast

import pytest

from tensortrail.rules.places import Where

from ..snippets import module_of

MODULE = """\
import torch
from torch import nn

class Masked(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.proj = nn.Linear(n, n)
        {first}

    def square(self, n):
        return torch.ones(n, n).triu()

    def forward(self, x):
        if {asked}:
            self.mask = {made}
        {then}
        return self.proj(x) + self.mask

    {more}
"""


def places(**parts: str) -> set[Where]:
    filled = {
        "first": "self.mask = None",
        "asked": "self.mask is None",
        "made": "self.square(len(x))",
        "then": "pass",
        "more": "pass",
    }
    module = module_of(MODULE.format(**{**filled, **parts}))
    forward = next(each for each in module.nodes(ast.FunctionDef) if each.name == "forward")
    sums = [each for each in module.places(forward).meetings if each.operation == "Add"]
    return {place.where for each in sums for place in each.right.places}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"made": "torch.ones(len(x), len(x))"},
        {"asked": "self.mask is None or self.mask.shape[0] != len(x)"},
        {"asked": "not hasattr(self, 'mask')", "first": "pass"},
        {"more": "def reset(self):\n        self.mask = None"},
    ],
)
def test_it_is_what_the_branch_made(parts: dict[str, str]) -> None:
    assert places(**parts) == {Where.DEFAULT}


@pytest.mark.parametrize(
    "parts",
    [
        {"made": "self.square(len(x)).to(x.device)"},
        {"then": "self.mask = self.mask.to(x.device)"},
        {"more": "def keep(self, mask):\n        self.mask = mask"},
        {"more": "def cuda(self):\n        self.mask = None\n        return super().cuda()"},
        {"first": "self.register_buffer('mask', None)"},
        {"asked": "self.mask is None and self.training"},
    ],
)
def test_it_may_be_something_else(parts: dict[str, str]) -> None:
    assert Where.DEFAULT not in places(**parts)
