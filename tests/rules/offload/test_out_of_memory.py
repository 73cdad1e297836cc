"""Memory that ran out, and the device map with which there is enough."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("accelerate")

from tests.rules.recorded import watched

FILLED = """\
import torch
from torch import nn
from accelerate import dispatch_model

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(8)))
        self.head = nn.Linear(1024, 1, bias=False)

    def forward(self, x):
        return self.head(self.blocks(x))

net = dispatch_model(Net(), {"": 0}, force_hooks=True)
room = torch.empty(164, 1024, 1024, dtype=torch.uint8, device="cuda")  # flagged
with torch.no_grad():
    net(torch.ones(1, 1024, device="cuda")).cpu()
"""


def test_one_entry_for_the_whole_model_is_split_into_blocks(tmp_path: Path) -> None:
    seen = watched(tmp_path, FILLED, "OFF113", "cuda:1x192MiB")
    (setting,) = seen.only.settings
    assert setting.name == "device_map"
    on_cpu = [f"blocks.{number}" for number in range(5, 8)]
    assert all(f"'{each}': 'cpu'" in setting.value for each in on_cpu)
    assert "'blocks.0': 'cuda:0'" in setting.value
    assert "'head': 'cuda:0'" in setting.value
    (tmp_path / "mended").mkdir()
    mended = FILLED.replace('{"": 0}', setting.value).replace("  # flagged", "")
    watched(tmp_path / "mended", mended, "OFF113", "cuda:1x192MiB")
