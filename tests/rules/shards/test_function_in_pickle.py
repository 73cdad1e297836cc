"""SHD449: functions that pickle does not find by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.refused import ended, mended

COMPILED = """\
import torch
def swish(x):
    return x * torch.sigmoid(x)
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.act = torch.nn.Linear(4, 4), {act}
import sys, types
sys.modules.setdefault("program", types.ModuleType("program")).__dict__.update(globals())
model = torch.nn.Sequential(Block())
torch.save(model, "model.pt")
"""


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ('torch.compile(swish, backend="eager")', "the compiled form of `swish`"),
        ("lambda x: x * 2", "a lambda at program.py:7"),
    ],
)
def test_an_attribute_of_a_module(tmp_path: Path, act: str, said: str) -> None:
    seen = ended(tmp_path, COMPILED.format(act=act), "SHD449")
    assert f"`model` has `model.0.act`, which is {said}" in seen.only.message
    assert "torch.save(model.state_dict()," in seen.fixed
    mended(tmp_path, seen, "SHD449")


def test_a_function_with_a_name(tmp_path: Path) -> None:
    seen = ended(tmp_path, COMPILED.format(act="swish"), "SHD449")
    assert seen.error is None
    assert not seen.found


SPAWNED = """\
import torch
from torch.utils.data import DataLoader
def loader(scale):
    join = lambda rows: torch.stack(rows) * scale
    return DataLoader(list(torch.ones(4, 2)), collate_fn=join, num_workers=1,
                      multiprocessing_context="spawn")
next(iter(loader(2)))
"""


@pytest.mark.filterwarnings("ignore:Got pickle error")
def test_what_a_spawned_worker_is_given(tmp_path: Path) -> None:
    seen = ended(tmp_path, SPAWNED, "SHD449")
    assert "has `collate_fn`, which is a lambda at program.py:4" in seen.only.message
    assert "with `def` at the top of the file" in seen.only.fixes[0].description
