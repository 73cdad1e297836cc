"""SHD468, `number-in-collective`: what counts as a number."""

from __future__ import annotations

import pytest

from tests.rules.judged import findings


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("total = loss.item()", True),
        ("total = 0\n    for each in loss:\n        total += each.item()", True),
        ("total = loss.item() / len(loss)", True),
        ("total = loss.sum()", False),
        ("total = 0.0\n    for each in loss:\n        total += each", False),
        ("total = loss.item()\n    total = torch.tensor(total)", False),
        ("total = 0\n    if len(loss):\n        total = loss", False),
    ],
)
def test_what_is_a_number(made: str, expected: bool) -> None:
    source = f"""
import torch
import torch.distributed as dist

def reduced(loss):
    {made}
    dist.all_reduce(total)
    return total
"""
    assert bool(findings("SHD468", source)) is expected


def test_the_number_is_what_the_call_gives() -> None:
    source = """
    import torch

    def log(accelerator, metrics):
        logs = {}
        for name, value in metrics.items():
            if isinstance(value, torch.Tensor):
                value = accelerator.reduce(value, reduction="mean").item()
            logs[name] = value
        return logs
    """
    assert not findings("SHD468", source)
