"""How bad it is that two forms of a device are not equal."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tensortrail.rules import all_rules
from tensortrail.testing import run

HEAD = """\
import torch

def merged(x: torch.Tensor, total: torch.Tensor, device: str, n: int):
    device = torch.device(device)
"""


EQUAL, APART = "if x.device == device", "if x.device != device"
MOVED = "total.add_(x.to(device))"


@pytest.mark.parametrize(
    ("test", "then", "otherwise", "severity"),
    [
        (APART, "x = x.to(device)", "", Severity.NOTE),
        (EQUAL, "total.add_(x)", MOVED, Severity.NOTE),
        (f"{EQUAL} and n", "total.add_(x)", MOVED, Severity.NOTE),
        (EQUAL, "total.add_(x)", "", Severity.NOTE),
        (APART, "return None", MOVED, Severity.NOTE),
    ],
)
def test_what_a_caller_may_give_is_a_note(
    test: str, then: str, otherwise: str, severity: Severity
) -> None:
    rest = f"    else:\n        {otherwise}\n" if otherwise else ""
    body = f"    {test}:\n        {then}\n{rest}    return total\n"
    found = run(all_rules()["DEV513"], HEAD + body)
    assert [each.severity for each in found] == [severity]


@pytest.mark.parametrize(
    ("use", "told"),
    [
        ("torch.ops.library.gru(x, n)", True),  # of what operators take, only tensors have a device
        ("library.gru(x, n)", False),
        ("n.gru(x)", False),
    ],
)
def test_what_has_a_device_and_goes_to_an_operator_is_a_tensor(use: str, told: bool) -> None:
    source = f"""
import torch
import library

def gru(x, n):
    if x.device == torch.device("xpu"):
        return {use}
    return None
"""
    assert bool(list(run(all_rules()["DEV513"], source))) is told
