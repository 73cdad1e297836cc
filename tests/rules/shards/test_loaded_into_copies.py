"""Distributed checkpoints that are read into copies of the weights."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

CODE = "SHD442"
HEAD = """\
import torch
import torch.distributed.checkpoint as dcp
from torch import nn

trained = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2))
dcp.save(trained.state_dict(), checkpoint_id=folder + "/kept", no_dist=True)
model = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2))
"""
CLONES = "state = {key: value.clone() for key, value in model.state_dict().items()}\n"
LOAD = "dcp.load(state, checkpoint_id=folder + '/kept', no_dist=True)\n"
USE = "model(torch.ones(1, 8))\n"


def test_nobody_gives_them_back(tmp_path: Path) -> None:
    seen = watched(tmp_path, HEAD + CLONES + LOAD.replace("\n", "  # flagged\n") + USE, CODE)
    assert "the 4 tensors that `dcp.load` filled" in seen.only.message
    assert "`model` has none of these values" in seen.only.message
    runs_without_findings(tmp_path, seen.fixed, CODE)


def test_into_an_empty_dict(tmp_path: Path) -> None:
    empty = "state = {}\n" + LOAD.replace("\n", "  # flagged\n")
    seen = watched(tmp_path, HEAD + empty, CODE)
    assert "is given an empty dict and loads nothing" in seen.only.message
    assert "`0.bias`" in seen.only.message


OPTIMIZER = """\
adam = torch.optim.Adam(trained.parameters())
trained(torch.ones(1, 8)).sum().backward()
adam.step()
dcp.save({"adam": adam.state_dict()}, checkpoint_id=folder + "/adam", no_dist=True)
fresh = torch.optim.Adam(model.parameters())
"""


def test_the_state_of_an_optimizer_that_has_not_stepped(tmp_path: Path) -> None:
    load = 'state = {"adam": fresh.state_dict()}\n' + LOAD.replace("kept", "adam")
    seen = watched(tmp_path, HEAD + OPTIMIZER + load.replace("True)\n", "True)  # flagged\n"), CODE)
    assert "finds `adam.state` empty and loads nothing into it" in seen.found[0].message
    assert "`adam.state.0.exp_avg`" in seen.found[0].message
    assert "get_optimizer_state_dict" in str(seen.found[0].fixes)


def test_the_state_of_an_optimizer_that_has_stepped(tmp_path: Path) -> None:
    step = "model(torch.ones(1, 8)).sum().backward()\nfresh.step()\n"
    load = 'state = {"adam": fresh.state_dict()}\n' + LOAD.replace("kept", "adam")
    given = 'fresh.load_state_dict(state["adam"])\n'
    assert not watched(tmp_path, HEAD + OPTIMIZER + step + load + given, CODE).found


GOOD = {
    "loaded": CLONES + LOAD + "model.load_state_dict(state)\n" + USE,
    "put in place": CLONES + LOAD + "model.load_state_dict(state, assign=True)\n" + USE,
    "copied": CLONES + LOAD
    + "with torch.no_grad():\n    for key, value in model.state_dict().items():\n"
    "        value.copy_(state[key])\n" + USE,
    "the model's own": "state = model.state_dict()\n" + LOAD + USE,
    "compared": CLONES + LOAD
    + "for key, value in trained.state_dict().items():\n"
    "    assert torch.equal(value, state[key])\n",
    "saved again": CLONES + LOAD + "torch.save(state, folder + '/whole.pt')\n",
    "one is looked at": CLONES + LOAD + "print(state['0.weight'].abs().mean())\n",
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_they_are_used(name: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, HEAD + GOOD[name], CODE).found
