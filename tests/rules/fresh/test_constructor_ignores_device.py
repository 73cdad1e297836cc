"""NEW309, `constructor-ignores-device`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severity


@pytest.mark.parametrize(
    ("after", "expected"), [("", Severity.WARNING), (".to(**self.where)", None)]
)
def test_a_parameter_that_is_moved_at_once(after: str, expected: Severity | None) -> None:
    source = (
        HEAD + "class Scale(nn.Module):\n    def __init__(self, n, device):\n"
        "        super().__init__()\n        self.where = dict(device=device)\n"
        f"        self.scale = nn.Parameter(torch.ones(n)){after}\n"
        "        self.proj = nn.Linear(n, n, device=device)\n"
    )
    assert severity("NEW309", source) is expected


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ("self.scale = nn.Parameter(torch.ones(n))", Severity.WARNING),
        ("self.register_buffer('scale', torch.ones(n))", Severity.NOTE),
        ("self.register_buffer('scale', torch.empty(n))", Severity.WARNING),
    ],
)
def test_a_buffer_that_is_made_without_the_device(kept: str, expected: Severity) -> None:
    source = (
        HEAD + "class Scale(nn.Module):\n    def __init__(self, n, device):\n"
        f"        super().__init__()\n        {kept}\n"
        "        self.proj = nn.Linear(n, n, device=device)\n"
    )
    assert severity("NEW309", source) is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", Severity.NOTE), (", **kwargs", Severity.WARNING)],
)
def test_a_constructor_may_use_its_device_for_nothing(given: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Packed(nn.Module):
    def __init__(self, n, device=None, dtype=None):
        super().__init__()
        kwargs = {{"device": device, "dtype": dtype}}
        self.register_buffer("weight", torch.empty((n, n)))
        self.out = nn.Linear(n, n{given})
"""
    assert severity("NEW309", source) is expected
