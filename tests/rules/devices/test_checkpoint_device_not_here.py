"""Files whose tensors go to a GPU that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched  # noqa: E402

CODE = "DEV611"
HEAD = """\
import torch
from torch import nn
path = folder + "/model.pt"
model = nn.Linear(4, 2){move}
torch.save(model.state_dict(), path)
"""
LOAD = "model.load_state_dict(torch.load(path{where}))  # flagged\n"


@pytest.mark.parametrize("where", [", map_location='cuda:1'", ", torch.device('cuda', 1)"])
def test_map_location_names_it(where: str, tmp_path: Path) -> None:
    source = HEAD.format(move=".cuda()") + LOAD.format(where=where)
    seen = watched(tmp_path, source, CODE, rehearse="cuda")
    assert "puts tensors on cuda:1, and there is 1 GPU: `map_location` says cuda:1" in (
        seen.only.message
    )
    runs_without_findings(tmp_path, seen.fixed, CODE, rehearse="cuda")


def test_the_file_remembers_it(tmp_path: Path) -> None:
    tag = "torch.serialization.location_tag"
    save = (
        f"real, {tag} = {tag}, lambda storage: 'cuda:1'\n"
        f"torch.save(model.state_dict(), path)\n{tag} = real\n"
    )
    source = HEAD.format(move="") + save + LOAD.format(where="")
    seen = watched(tmp_path, source, CODE)
    there = "there is 1 GPU" if torch.cuda.is_available() else "there is none here"
    assert f"{there}: model.pt has tensors that were saved from there at program.py:7" in (
        seen.only.message
    )
    runs_without_findings(tmp_path, seen.fixed, CODE)


def test_the_device_that_is_there(tmp_path: Path) -> None:
    source = HEAD.format(move=".cuda()") + LOAD.format(where=", 'cuda:0'").replace("# flagged", "")
    assert not watched(tmp_path, source, CODE, rehearse="cuda").found


TWO = """\
import torch
from torch import nn
front, back = nn.Linear(8, 8).to("cuda:0"), nn.Linear(8, 1).to("cuda:1")
hidden = front(torch.ones(4, 8, device="cuda:0"))
penalty = hidden.pow(2).mean()
main = back(hidden.to("cuda:1")).pow(2).mean()
loss = penalty + main  # flagged
loss.backward()
"""


def test_two_scalars_of_two_gpus(tmp_path: Path) -> None:
    seen = watched(tmp_path, TWO, "DEV502", rehearse="cuda:2")
    assert "`penalty` is computed there at program.py:5" in seen.only.message
    assert "penalty.to(main.device) + main" in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, "DEV502", rehearse="cuda:2")
