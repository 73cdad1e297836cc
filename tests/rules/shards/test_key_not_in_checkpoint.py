"""Loads of distributed checkpoints that are refused, watching real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Safety
from tests.rules.recorded import runs_without_findings, watched

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled"),
    pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated"),
]
PROGRAM = """\
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException

net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
dcp.save(SAVED, checkpoint_id=folder + "/step")
other = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2, bias=False))
try:
    dcp.load(ASKED, checkpoint_id=folder + "/step")  # flagged
except CheckpointException as error:
    assert "REFUSED" in str(error)
"""


def program(saved: str, asked: str, refused: str = "Missing key") -> str:
    return PROGRAM.replace("SAVED", saved).replace("ASKED", asked).replace("REFUSED", refused)


def test_another_name_before_all_keys(tmp_path: Path) -> None:
    source = program('{"model": net.state_dict()}', '{"net": other[:2].state_dict()}')
    seen = watched(tmp_path, source, "SHD435")
    assert seen.only.message == (
        f"{tmp_path}/step lacks `net.0.bias`, `net.0.weight` and 2 more: keys begin with `net.` "
        "here, and with `model.` there, as saved at program.py:7"
    )
    assert seen.only.fixes[0].safety is Safety.UNSAFE
    runs_without_findings(tmp_path, seen.fixed, "SHD435")


@pytest.mark.parametrize(("saved", "asked", "said"), [
    ('{"model": net.state_dict()}', "other[:2].state_dict()", "no such name here, and with `model"),
    ("net.state_dict()", '{"model": other[:2].state_dict()}', "`model.` here, and with no such na"),
])  # fmt: skip
def test_a_name_on_one_side_only(tmp_path: Path, saved: str, asked: str, said: str) -> None:
    seen = watched(tmp_path, program(saved, asked), "SHD435")
    assert said in seen.only.message
    assert seen.only.fixes[0].safety is Safety.DISPLAY


def test_a_layer_that_is_new(tmp_path: Path) -> None:
    seen = watched(tmp_path, program("net.state_dict()", "other.state_dict()"), "SHD435")
    assert seen.only.message == f"{tmp_path}/step lacks `2.weight`"
    (setting,) = seen.only.settings
    assert not seen.only.fixes
    planner = f", planner=dcp.DefaultLoadPlanner({setting.name}={setting.value}))"
    mended = program("net.state_dict()", "other.state_dict()")
    mended = mended.replace('"/step")  # flagged', f'"/step"{planner}')
    runs_without_findings(tmp_path, mended, "SHD435")


def test_a_load_that_fails_for_another_reason(tmp_path: Path) -> None:
    other_size = "{**net.state_dict(), '0.bias': torch.ones(5)}"
    source = program("net.state_dict()", other_size, "Size mismatch")
    assert not watched(tmp_path, source.replace("# flagged", ""), "SHD435").found
