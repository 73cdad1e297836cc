"""STO212 in a run: variables that keep the graph of each step."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import watched

CODE = "STO212"
LOOP = """\
import torch
from torch import nn
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
total, losses = 0, []
for _ in range(30):
    loss = net(torch.ones(1, 2)).square().mean()
    optimizer.zero_grad()
    {back}
    optimizer.step()
    {keep}
"""


@pytest.mark.parametrize("keep", ["total += loss", "total = total + loss", "losses.append(loss)"])
def test_graphs_that_are_kept(keep: str, tmp_path: Path) -> None:
    source = LOOP.format(back="loss.backward()", keep=f"{keep}  # flagged")
    message = watched(tmp_path, source, CODE).only.message
    name = "losses" if "append" in keep else "total"
    assert message.startswith(f"`{name}` keeps the graph of each step: 12 more in 12 steps")


@pytest.mark.parametrize(("back", "keep"), [
    ("loss.backward()", "total += loss.item()"),
    ("loss.backward()", "losses.append(loss.detach())"),
    ("sum(loss * each for each in range(20)).backward()", "last = loss"),
])  # fmt: skip
def test_values_and_graphs_of_one_step(back: str, keep: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, LOOP.format(back=back, keep=keep), CODE).found
