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


@pytest.mark.parametrize(("turns", "said"), [(40, ""), (100, "48 more in 96 steps")])
def test_what_begins_late_and_grows_slowly(turns: int, said: str, tmp_path: Path) -> None:
    """From the 40th step on, and once for two steps of an optimizer."""
    keep = "losses.append(loss) if number >= 20 else None" + "  # flagged" * bool(said)
    source = LOOP.format(back="loss.backward(); optimizer.step()", keep=keep)
    found = watched(tmp_path, source.replace("_ in range(30)", f"number in range({turns})"), CODE)
    assert [said in each.message for each in found.found] == [True] * bool(said)


def test_it_is_told_once(tmp_path: Path) -> None:
    source = LOOP.format(back="loss.backward()", keep="total += loss  # flagged")
    found = watched(tmp_path, source.replace("range(30)", "range(100)"), CODE).only
    assert "12 more in 12 steps" in found.message


def test_a_list_that_is_emptied(tmp_path: Path) -> None:
    keep = "losses.append(loss); losses = losses if len(losses) < 10 else []"
    source = LOOP.format(back="loss.backward()", keep=keep).replace("range(30)", "range(100)")
    assert not watched(tmp_path, source, CODE).found
