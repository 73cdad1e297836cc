"""DEV543, `optimizer-before-move`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

RESUMED = """
import torch
from radam import RAdam

def train(model, checkpoint, settings):
    optimizer = {made}
    plan = getattr(torch.optim.lr_scheduler, settings.name)
    plan = plan(optimizer, **settings.more)
    {loaded}.load_state_dict(checkpoint)
    model.cuda()
    optimizer.step()
    plan.step()
"""


@pytest.mark.parametrize(
    ("made", "loaded", "expected"),
    [
        ("torch.optim.Adam(model.parameters())", "optimizer", Severity.ERROR),
        ("RAdam(model.parameters())", "optimizer", Severity.NOTE),
        ("torch.optim.Adam(model.parameters())", "plan", None),
    ],
)
def test_whose_state_is_loaded(made: str, loaded: str, expected: Severity | None) -> None:
    assert severity("DEV543", RESUMED.format(made=made, loaded=loaded)) is expected
