"""DEV540, `batch-moved-in-part`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(("kept", "expected"), [("y", Severity.WARNING), ("y.to(device)", None)])
def test_lists_may_be_joined_in_one_statement(kept: str, expected: Severity | None) -> None:
    source = f"""
import torch

def score(model, loader, device):
    best, labels = [], []
    for x, y in loader:
        best.append(model(x.to(device)).argmax(1))
        labels.append({kept})
    best, labels = torch.cat(best), torch.cat(labels)
    return (best == labels).float().mean()
"""
    assert severity("DEV540", source) is expected


def test_parts_of_sequences_of_their_own_are_no_batch() -> None:
    source = """
    import torch.nn.functional as F

    def compared(model, {names}, device):
        for x, y in {over}:
            out = model(x.to(device))
            yield F.mse_loss(out, y)
    """
    model = "\n    import torch\n    model = torch.nn.Linear(2, 2)\n"
    of_loader = source.format(names="loader", over="loader") + model
    of_two = source.format(names="xs, ys", over="zip(xs, ys)") + model
    assert severity("DEV540", of_loader) is not Severity.NOTE
    assert severity("DEV540", of_two) in (None, Severity.NOTE)
