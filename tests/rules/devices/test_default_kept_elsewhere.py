"""DEV570, `default-kept-elsewhere`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("weight", "expected"),
    [("self.size = n", None), ("self.weight = nn.Parameter(torch.ones(n))", Severity.NOTE)],
)
def test_a_module_without_weights_needs_no_device(weight: str, expected: Severity | None) -> None:
    source = f"""
import torch
from torch import nn

class Pool(nn.Module):
    def __init__(self, n):
        super().__init__()
        {weight}

class Pitch:
    def __init__(self, device=None):
        self.device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.pool = Pool(3).to(device)
"""
    assert severity("DEV570", source) is expected


ASKED = """
import torch

def started(count, where=None):
    if {test}:
        chosen = pick()
    else:
        chosen = where
    return torch.zeros(count, device=where), chosen
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("where is None", Severity.NOTE),
        ("where == None or where == 'auto'", Severity.NOTE),
        ("not where", Severity.NOTE),
        ("where.is_small()", None),
        ("where == 'auto'", None),
    ],
)
def test_what_is_asked_is_whether_it_was_given(test: str, expected: Severity | None) -> None:
    assert severity("DEV570", ASKED.format(test=test)) is expected
