"""DEV527, `argument-dropped`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import findings, lines, severity, severity_in_package

HANDED = (
    "import torch\n\n\ndef parsed(text, device=None):\n"
    "    return torch.tensor(list(map(float, text)))\n"
    "\n\ndef read(path, device=None):\n    return parsed(open(path), device)\n"
    "\n\ndef table(path, {own}):\n    return read(path, {passed})\n"
    "\n\ndef both(path):\n    return read(path), table(path)\n"
)


@pytest.mark.parametrize(
    ("own", "passed", "expected"),
    [
        ("rows=2", "**{}", Severity.WARNING),
        ("device=None", "device=device", Severity.NOTE),
        ("device='cuda'", "device=device", Severity.WARNING),
        ("rows=2", "device='cuda'", Severity.WARNING),
    ],
)
def test_what_nobody_hands_on(own: str, passed: str, expected: Severity) -> None:
    found = findings("DEV527", HANDED.format(own=own, passed=passed))
    assert [each.severity for each in found if each.site.line == 5] == [expected]


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("print(found[:, 0].mean().item(), found.max().item())", Severity.NOTE),
        ("return found[:, 0]", Severity.WARNING),
    ],
)
def test_numbers_that_are_only_shown(use: str, expected: Severity) -> None:
    source = (
        "import torch\n\n\ndef shown(rows, gpu):\n    device = torch.device(f'cuda:{gpu}')\n"
        f"    found = torch.tensor(rows)\n    {use}\n"
    )
    assert severity("DEV527", source) is expected


TABLE = """
import torch

def table(n, device=None):
    return torch.rand(n).outer(torch.rand(n))
"""


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("table(3)", Severity.NOTE),
        ("table(3, x.device)", Severity.WARNING),
        ("table(3, device=x.device)", Severity.WARNING),
        ("table(*x)", Severity.WARNING),
        ("x", Severity.WARNING),
    ],
)
def test_a_device_that_no_caller_passes(tmp_path: Path, call: str, expected: Severity) -> None:
    other = f"from pkg.own import table\n\ndef use(x):\n    return {call}\n\nprint(use(ROWS))\n"
    assert severity_in_package(tmp_path, "DEV527", TABLE, other=other) is expected


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("call", "expected"),
    [("table(3)", Severity.NOTE), ("table(3, device=x.device)", Severity.WARNING)],
)
def test_another_function_of_that_name(tmp_path: Path, call: str, expected: Severity) -> None:
    """Calls of either count: which of them is meant is not asked."""
    other, main = f"{TABLE}\ndef use(x):\n    return {call}\n", "from pkg.own import table\n"
    found = severity_in_package(
        tmp_path, "DEV527", TABLE, other=other, main=f"{main}\nprint(table)\n"
    )
    assert found is expected


@pytest.mark.parametrize("name", ["tensor", "as_tensor"])
def test_a_dtype_that_is_never_read(name: str) -> None:
    source = f"""
    import torch

    def values(device, dtype):
        return torch.{name}([0.0, 0.5, 1.0], device=device)
    """
    assert lines("DEV527", source) == [(5, Severity.WARNING)]


@pytest.mark.parametrize(
    ("made", "expected"), [("torch.empty(0)", None), ("torch.ones(3)", Severity.WARNING)]
)
def test_a_tensor_without_elements_needs_no_device(made: str, expected: Severity | None) -> None:
    source = f"""
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        device = x.device
        return x, {made}
"""
    assert severity("DEV527", source) is expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Packed(3)", Severity.NOTE),
        ("Packed(3, device=x.device)", Severity.WARNING),
        ("Packed(3, x.device)", Severity.WARNING),
        ("Packed(**x)", Severity.WARNING),
        ("x", Severity.WARNING),
    ],
)
def test_a_device_that_no_caller_gives(call: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Packed(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n))

def packed(x):
    return {call}
"""
    assert severity("DEV527", source) is expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("x[torch.arange(n).unsqueeze(-1), best]", None),
        ("x[torch.arange(n)]", None),
        ("x + torch.arange(n)", Severity.WARNING),
    ],
)
def test_an_index_may_lie_on_the_cpu(rows: str, expected: Severity | None) -> None:
    source = f"""
import torch

def picked(x, best, n, device):
    return {rows}
"""
    assert severity("DEV527", source) is expected
