"""Checkpoints of wrappers, loaded into the module inside."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import tensortrail
from tests.rules.recorded import runs_without_findings, watched

SAVED = """\
import torch
from torch import nn
def build():
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
path = folder + "/model.pt"
model = nn.DataParallel(build())
torch.save({"epoch": 3, "state_dict": model.state_dict()}, path)
"""
HIDDEN = """\
weights = torch.load(path)["state_dict"]
build().load_state_dict(weights, strict=False)  # flagged
"""


def test_a_load_that_is_not_strict_hides_it(tmp_path: Path) -> None:
    seen = watched(tmp_path, SAVED + HIDDEN, "SHD409")
    assert "4 weights stay as they were, and `strict=False` hides it" in seen.only.message
    assert "saved at program.py:7" in seen.only.message
    assert '"state_dict": model.module.state_dict()' in seen.fixed


@pytest.mark.parametrize(
    "load",
    [
        "nn.DataParallel(build()).load_state_dict(weights, strict=False)\n",
        "inner = {name.removeprefix('module.'): each for name, each in weights.items()}\n"
        "build().load_state_dict(inner | {'extra': torch.ones(1)}, strict=False)\n",
        "head = {'0.weight': weights['module.0.weight'], 'other': torch.ones(1)}\n"
        "build().load_state_dict(head, strict=False)\n",
    ],
)
def test_what_fits_is_loaded(tmp_path: Path, load: str) -> None:
    weights = 'weights = torch.load(path)["state_dict"]\n'
    watched(tmp_path, f"{SAVED}{weights}{load}", "SHD409")


PLAIN = """\
import torch
from torch import nn
def build():
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
"""
LOADS = {
    "two wrappers": (
        "given = {'_orig_mod.module.' + k: v for k, v in build().state_dict().items()}\n"
        "build().load_state_dict(given)  # flagged\n",
        "the names that torch.compile and a parallel wrapper give to the module inside",
    ),
    "another module": (
        "given = {'net.model.' + k: v for k, v in build().state_dict().items()}\n"
        "build().load_state_dict(given)  # flagged\n",
        "`net.model.`, the names under which another module holds this one",
    ),
    "into the wrapper": (
        "model = nn.DataParallel(build())\n"
        "model.load_state_dict(build().state_dict())  # flagged\n",
        "the model's keys begin with `module.`",
    ),
}


@pytest.mark.parametrize("name", LOADS)
def test_keys_that_nobody_was_seen_to_save(name: str, tmp_path: Path) -> None:
    load, words = LOADS[name]
    seen = watched(tmp_path, PLAIN + load, "SHD409")
    assert words in seen.only.message
    runs_without_findings(tmp_path, seen.fixed, "SHD409")


KEYS = {
    "module.": ["`given` has `module.0.weight` and no `0.weight`", "given = {key.removeprefix"],
    "": [],
}


@pytest.mark.parametrize("prefix", KEYS)
def test_a_key_that_is_there_with_a_prefix(prefix: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    load = (
        f"given = {{'{prefix}' + k: v for k, v in build().state_dict().items()}}\n"
        f"given['0.weight' if '{prefix}' else 'weight']\n"
    )
    program.write_text(PLAIN + load)
    with pytest.raises(KeyError), tensortrail.trace(tmp_path / "run") as run:
        exec(compile(program.read_bytes(), str(program), "exec"), {"__name__": "program"})
    said = [(each.message, each.fixes) for each in run.findings() if each.code == "SHD409"]
    assert bool(said) == bool(prefix)
    for (message, (fix,)), (words, edit) in zip(said, [KEYS[prefix]], strict=False):
        assert words in message
        assert fix.edits[0].text.startswith(edit)
