"""STO222 and STO224: a graph in what is copied, or in what a worker gives."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.refused import ended, mended

KEEPS = """\
import copy
import torch
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.{name} = torch.nn.Linear(4, 4), None
        self.{name} = None
    def forward(self, x):
        self.{name} = {value}
        return self.mix(x)
model = torch.nn.Sequential(Layer())
model(torch.ones(2, 4))
copy.deepcopy(model)
"""
TRACKER = """\
import copy
import torch
class Tracker:
    def __init__(self):
        self.losses = []
tracker = Tracker()
tracker.losses.append(torch.nn.Linear(4, 4)(torch.ones(4)).sum(){detached})
copy.deepcopy(tracker)
"""
NORM = """\
import copy
import torch
net = torch.nn.Sequential({norm}(torch.nn.Linear(4, 4)))
net(torch.ones(2, 4)).sum().backward()
copy.deepcopy(net)
"""


@pytest.mark.parametrize("value", ["torch.softmax(self.mix(x), -1)", "self.mix(x) * 2"])
@pytest.mark.parametrize("name", ["map", "last"])
def test_an_attribute(tmp_path: Path, name: str, value: str) -> None:
    seen = ended(tmp_path, KEEPS.format(name=name, value=value), "STO222")
    assert seen.only.site.line == 13
    assert f"`model.0.{name}`, assigned at program.py:9, belongs to a graph" in seen.only.message
    mended(tmp_path, seen, "STO222")


def test_a_container_of_any_object(tmp_path: Path) -> None:
    seen = ended(tmp_path, TRACKER.format(detached=""), "STO222")
    assert "`tracker.losses[0]`" in seen.only.message
    assert "`.detach()` of it in `tracker.losses[0]`" in seen.only.fixes[0].description
    assert ended(tmp_path / "after", TRACKER.format(detached=".detach()"), "STO222").error is None


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_an_old_weight_norm(tmp_path: Path) -> None:
    seen = ended(tmp_path, NORM.format(norm="torch.nn.utils.weight_norm"), "STO222")
    assert "`net.0.weight`, which `WeightNorm` computes before each call" in seen.only.message
    new = "torch.nn.utils.parametrizations.weight_norm"
    assert f"`{new}`" in seen.only.fixes[0].description
    assert ended(tmp_path / "after", NORM.format(norm=new), "STO222").error is None


WORKER = """\
import torch
from torch.utils.data import DataLoader, Dataset
class Embedded(Dataset):
    def __init__(self):
        self.embed = torch.nn.Linear(4, 2)
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return self.embed(torch.ones(4))
for batch in DataLoader(Embedded(), batch_size=2, num_workers={workers}):
    pass
"""


def test_a_worker(tmp_path: Path) -> None:
    seen = ended(tmp_path, WORKER.format(workers=1), "STO224")
    assert "`Embedded.__getitem__` at program.py:8 gives tensors" in seen.only.message
    mended(tmp_path, seen, "STO224")


def test_no_worker(tmp_path: Path) -> None:
    seen = ended(tmp_path, WORKER.format(workers=0), "STO224")
    assert seen.error is None
    assert not seen.found
