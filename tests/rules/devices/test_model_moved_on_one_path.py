"""DEV601, `model-moved-on-one-path`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("loss", "expected"),
    [("nn.CrossEntropyLoss()", None), ("nn.Linear(4, 4)", Severity.WARNING)],
)
def test_a_loss_without_weights_lies_nowhere(loss: str, expected: Severity | None) -> None:
    source = f"""
from torch import nn
from warp import CTCLoss

def train(x, y, device, warped):
    if warped:
        criterion = CTCLoss()
    else:
        criterion = {loss}.to(device)
    return criterion(x, y)
"""
    assert severity("DEV601", source) is expected
