"""DEV534, `twin-without-device`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, lines, severity

ORDERED = (
    HEAD + "def columns(x: torch.Tensor, n, m):\n    device = x.device\n"
    "    found = torch.zeros(n, m, device=device)\n    chance = torch.rand(n, m)\n"
    "    {use}\n    return found\n"
)


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("found = found + chance", Severity.WARNING),
        ("order = chance.argsort(dim=1)\n    found[:, order] = 1.0", Severity.NOTE),
        ("order = chance.argsort(dim=1)\n    found = found * order", Severity.WARNING),
    ],
)
def test_a_tensor_that_only_gives_an_order(use: str, expected: Severity) -> None:
    assert severity("DEV534", ORDERED.format(use=use)) is expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("torch.tensor(list(range(n)))", Severity.NOTE),
        ("x", Severity.WARNING),
    ],
)
def test_a_tensor_beside_its_like(other: str, expected: Severity) -> None:
    source = (
        HEAD + "def padded(x: torch.Tensor, n, m):\n    device = x.device\n"
        "    left = torch.zeros(n, m, device=device)\n"
        f"    right = torch.cat([{other}, torch.zeros(n, m)])\n    return left, right\n"
    )
    assert severity("DEV534", source) is expected


def test_layers_that_are_kept_in_a_mapping() -> None:
    source = """
    import torch
    from torch import nn

    class Added(nn.Module):
        def add(self, name, rows, columns, weight):
            self.down[name] = nn.Linear(rows, 4, bias=False, device=weight.device)
            self.up[name] = nn.Linear(4, columns, bias=False)
    """
    assert lines("DEV534", source) == [(8, Severity.WARNING)]


MADE = (
    HEAD + "class Batch(nn.Module):\n    def build(self, n, device):\n"
    "        sizes = torch.zeros(n, 2, device=device)\n"
    "        {name} = torch.zeros(n, 2)\n        return self.net(sizes, {name})\n"
)


@pytest.mark.parametrize(("name", "expected"), [("rows", True), ("rows_cpu", False)])
@pytest.mark.parametrize("code", ["DEV534", "DEV541"])
def test_a_name_that_says_cpu(code: str, name: str, expected: bool) -> None:
    found = severity(code, MADE.format(name=name))
    assert found in ((Severity.WARNING,) if expected else (Severity.NOTE, None))


def test_the_first_of_two_says_the_device_of_the_second() -> None:
    source = """
    import torch

    def batched(x, device=None):
        return torch.as_tensor(x, device=device)

    def update(one, other):
        first = batched(one)
        second = batched(other, device={device})
        return first, second
    """
    assert severity("DEV534", source.format(device="first.device")) is None
    assert severity("DEV534", source.format(device="one.device")) is Severity.WARNING
