"""A mismatch that the compiler refuses in a plain run is explained by the tensors that met."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import warm

torch = pytest.importorskip("torch")

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3, 3))
        self.scale = torch.ones(3)

    def forward(self, x):
        return (x @ self.weight) * self.scale

net = Net().to("meta")
x = torch.ones(3, 3, device="meta")
"""
COMPILED = {
    "held": "compiled = torch.compile(net, backend='eager')\ncompiled(x)\n",
    "not held": "torch.compile(net, backend='eager')(x)\n",
    "a function": "@torch.compile(backend='eager')\ndef run(x):\n    return net(x)\nrun(x)\n",
    "exported": "torch.export.export(net, (x,))\n",
}


def told_by(folder: Path, source: str) -> str:
    (folder / "train.py").write_text(source)
    ran = warm.run(["-m", "tensortrail", "trace", "train.py"], folder)
    assert ran.returncode == 1
    return ran.stderr.partition("tensortrail: what was where")[2]


@pytest.mark.parametrize("then", COMPILED.values(), ids=COMPILED.keys())
def test_the_tensor_and_who_left_it_behind(tmp_path: Path, then: str) -> None:
    told = told_by(tmp_path, MODEL + then)
    assert "cpu   float32 3 " in told
    assert "made at train.py:8 in Net.__init__, torch.ones" in told
    name = "compiled._orig_mod.scale" if "compiled =" in then else "net.scale"
    assert "error OFF107  train.py:11  is explained above" in told
    assert f"cause    OFF107 `{name}` is on cpu" in told
    assert "when `Net` was moved to meta at train.py:13" in told
    assert "The graph being captured" not in told


def test_a_value_made_inside(tmp_path: Path) -> None:
    source = (
        "import torch\n\n@torch.compile(backend='eager')\ndef masked(x):\n"
        "    mask = torch.arange(3)\n    return torch.where(x > 0, x, mask)\n\n"
        "masked(torch.ones(3, device='meta'))\n"
    )
    told = told_by(tmp_path, source)
    assert "torch.where" in told
    assert "meta" in told
    assert "cpu" in told
