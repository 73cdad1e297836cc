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


ALONE = """\
import torch
from torch import nn
net = nn.Linear(2, 1)
def step(optimizer):
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
saved = optimizer.state_dict()
saved["param_groups"][0].update(lr=0.025, initial_lr=0.1)
optimizer.load_state_dict(saved)
{set}
torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5 ** epoch){mark}
step(optimizer)
"""


def test_a_program_that_only_goes_on(tmp_path: Path) -> None:
    source = ALONE.replace("{set}", "").replace("{mark}", "  # flagged")
    assert watched(tmp_path, source, CODE).found


@pytest.mark.parametrize(
    "chosen", ['group["lr"] = 0.1', 'group["lr"] = 0.05', 'group["lr"] = group["initial_lr"] = 1.0']
)
def test_a_rate_that_was_set_since_the_load(chosen: str, tmp_path: Path) -> None:
    sets = f"for group in optimizer.param_groups:\n    {chosen}"
    source = ALONE.replace("{set}", sets).replace("{mark}", "")
    assert not watched(tmp_path, source, CODE).found


@pytest.mark.parametrize("phase", [
    "optimizer.load_state_dict(saved)\n"
    "torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9 ** epoch)\n",
    "optimizer.load_state_dict(saved)\n"
    "torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.4, total_steps=9, div_factor=4)\n",
    "optimizer = first\noptimizer.load_state_dict(saved)\nplan(optimizer)\n",
], ids=["another curve", "another class", "another round"])  # fmt: skip
def test_a_schedule_that_begins_anew_on_purpose(phase: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, f"{HEAD}{phase}step(optimizer)\n", CODE).found


def test_a_scheduler_made_after_the_load(tmp_path: Path) -> None:
    told = watched(tmp_path, HEAD + SET_BACK, CODE).only.message
    assert told == (
        "`LambdaLR` sets the learning rate back to 0.1: the state that `SGD` loaded at "
        "program.py:20 had 0.025, but the next step used the first rate"
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


REPLACED = """\
import torch
from torch.optim.lr_scheduler import StepLR
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = StepLR(optimizer, 1)
for epoch in range(5):
    if epoch == 1:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    schedule.step()  # flagged
"""


def test_a_schedule_of_an_optimizer_that_was_replaced(tmp_path: Path) -> None:
    seen = watched(tmp_path, REPLACED, "SHD466")
    assert "changes the learning rate of `SGD`, which makes no more steps" in seen.only.message
    assert "another `SGD`, made at program.py:8, steps the same weights" in seen.only.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lr=0.1)\n    net", "lr=0.1)\n        schedule = StepLR(optimizer, 1)\n    net"),
        ("if epoch == 1", "if False"),
        ("    optimizer.step()", "    if epoch != 2:\n        optimizer.step()"),
    ],
)
def test_a_schedule_of_the_optimizer_that_steps(old: str, new: str, tmp_path: Path) -> None:
    source = REPLACED.replace("  # flagged", "").replace(old, new)
    if "epoch != 2" in new:
        source = source.replace("if epoch == 1", "if False")
    assert not watched(tmp_path, source, "SHD466").found
