"""Parameters that data parallelism waits for are named."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import tensortrail

SOURCE = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.spare = nn.Linear(4, 2), nn.Linear(4, 2)
    def forward(self, x):
        return self.used(x)

try:
    model = DDP(Net())
    for _ in range(2):
        model(torch.ones(2, 4)).sum().backward()
finally:
    dist.destroy_process_group()
"""


def test_they_are_named(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SOURCE)
    code = compile(program.read_bytes(), str(program), "exec")
    with pytest.raises(RuntimeError), tensortrail.trace(tmp_path / "run") as run:
        exec(code, {"__name__": "program", "folder": str(tmp_path)})
    (found,) = [each for each in run.findings() if each.code == "NEW317"]
    assert "did not use `spare.weight` and `spare.bias`:" in found.message
    assert found.fixes[0].edits[0].text == "Net(), find_unused_parameters=True"


@pytest.mark.parametrize(
    ("old", "new"),
    [("DDP(Net())", "DDP(Net(), find_unused_parameters=True)"),
     ("self.used(x)", "self.used(x) + self.spare(x)")],
)  # fmt: skip
def test_none_that_it_waits_for(tmp_path: Path, old: str, new: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(SOURCE.replace(old, new))
    code = compile(program.read_bytes(), str(program), "exec")
    with tensortrail.trace(tmp_path / "run") as run:
        exec(code, {"__name__": "program", "folder": str(tmp_path)})
    assert not [each for each in run.findings() if each.code == "NEW317"]


def test_parameters_that_were_replaced(tmp_path: Path) -> None:
    source = SOURCE.replace("self.used(x)", "self.used(x) + self.spare(x)")
    source = source.replace("Net())\n", "Net())\n    model.module.spare = nn.Linear(4, 2)\n")
    program = tmp_path / "program.py"
    program.write_text(source)
    code = compile(program.read_bytes(), str(program), "exec")
    with pytest.raises(RuntimeError), tensortrail.trace(tmp_path / "run") as run:
        exec(code, {"__name__": "program", "folder": str(tmp_path)})
    (found,) = [each for each in run.findings() if each.code == "NEW317"]
    assert found.message.endswith(
        "`spare.weight` and `spare.bias` that it was made with: the model has others in their "
        "place, made at program.py:17"
    )
    assert not found.fixes[0].edits
