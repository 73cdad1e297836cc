"""SHD466, `rate-set-back`: a scheduler that is made after the optimizer's state was loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import watched

CODE = "SHD466"
HEAD = """\
import torch
from torch import nn
net = nn.Linear(2, 1)
def build():
    return torch.optim.SGD(net.parameters(), lr=0.1)
def decay(epoch):
    return 0.5 ** epoch
def plan(optimizer, last=-1):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, decay, last_epoch=last)
def step(optimizer):
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
first = build()
planned = plan(first)
for _ in range(2):
    step(first)
    planned.step()
saved, kept = first.state_dict(), planned.state_dict()
optimizer = build()
"""
SET_BACK = """\
optimizer.load_state_dict(saved)
torch.optim.lr_scheduler.LambdaLR(optimizer, decay)  # flagged
step(optimizer)
"""


def test_a_scheduler_made_after_the_load(tmp_path: Path) -> None:
    told = watched(tmp_path, HEAD + SET_BACK, CODE).only.message
    assert told == (
        "`LambdaLR` sets the learning rate back to 0.1: the state that `SGD` loaded at "
        "program.py:20 had 0.025, and the next step was made with the first"
    )


@pytest.mark.parametrize("resumed", [
    "scheduler = plan(optimizer)\noptimizer.load_state_dict(saved)\n",
    "optimizer.load_state_dict(saved)\nscheduler = plan(optimizer, 1)\n",
    "optimizer.load_state_dict(saved)\nscheduler = plan(optimizer)\nscheduler.step()\n"
    "scheduler.step()\n",
    "optimizer.load_state_dict(build().state_dict())\nscheduler = plan(optimizer)\n",
])  # fmt: skip
def test_rates_that_go_on(resumed: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, f"{HEAD}{resumed}step(optimizer)\n", CODE).found
