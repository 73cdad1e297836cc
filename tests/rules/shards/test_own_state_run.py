"""SHD420 in a run: a state dict that is loaded into the module whose tensors it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

FIT = """\
import copy
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def step():
    optimizer.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()

"""


DISTRIBUTED = """\
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
step()
weights, state = get_state_dict(net, optimizer)
dcp.save({"net": weights}, checkpoint_id="saved")
step()
weights, state = get_state_dict(net, optimizer)
step()
dcp.load({"net": weights}, checkpoint_id="saved")
set_state_dict(net, optimizer, model_state_dict=weights, optim_state_dict=state)
"""
RESUMED = """\
torch.save(net.state_dict(), "saved.pt")
net.load_state_dict(torch.load("saved.pt"))
best = net.state_dict()
step()
net.load_state_dict(best)  # flagged
"""


def test_what_a_distributed_load_wrote_into(tmp_path: Path) -> None:
    watched(tmp_path, FIT + DISTRIBUTED, "SHD420")


def test_the_best_state_of_a_model_that_came_from_a_file(tmp_path: Path) -> None:
    assert watched(tmp_path, FIT + RESUMED, "SHD420").only


def test_the_best_state_was_not_copied(tmp_path: Path) -> None:
    program = f"{FIT}best = net.state_dict()\nstep()\nnet.load_state_dict(best)  # flagged\n"
    seen = watched(tmp_path, program, "SHD420")
    assert "program.py:11 gave the tensors of `Linear` themselves" in seen.only.message
    assert "optimizers have made 1 step since" in seen.only.message
    runs_without_findings(tmp_path, seen.fixed, "SHD420")


@pytest.mark.parametrize(
    "program",
    [
        "best = copy.deepcopy(net.state_dict())\nstep()\nnet.load_state_dict(best)",
        "state = net.state_dict()\nstate['weight'].zero_()\nnet.load_state_dict(state)",
        "step()\nnet.load_state_dict(net.state_dict())",
        "state = net.state_dict()\nstep()\ncopy.deepcopy(net).load_state_dict(state)",
        "state = net.state_dict()\nstate['bias'] = torch.ones(1)\nstep()\n"
        "net.load_state_dict(state)",
    ],
)
def test_other_loads(tmp_path: Path, program: str) -> None:
    watched(tmp_path, FIT + program, "SHD420")


KEPT = """\
import copy
import torch
from torch import nn
client = nn.Linear(2, 1)
optimizer = torch.optim.SGD(client.parameters(), lr=0.1)
updates = []
for _ in range(3):
    optimizer.zero_grad()
    client(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    {keep}
"""


def test_states_that_are_all_of_one_model(tmp_path: Path) -> None:
    source = KEPT.format(keep="updates.append(client.state_dict())  # flagged")
    told = watched(tmp_path, source, "SHD420").only
    assert told.message.startswith("3 state dicts of one `Linear` are kept")
    assert "clone()" in told.fixes[0].description


@pytest.mark.parametrize("keep", [
    "updates.append(copy.deepcopy(client.state_dict()))",
    "updates.append({key: each.clone() for key, each in client.state_dict().items()})",
    "last = client.state_dict()",
])  # fmt: skip
def test_copies_and_the_last_one_alone(keep: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, KEPT.format(keep=keep), "SHD420").found
