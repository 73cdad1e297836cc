"""OFF105 in a run: offloaded weights that are changed between the calls of their module."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("accelerate")

from tests.rules.recorded import watched

CODE = "OFF105"
MODEL = """\
import torch
from accelerate import cpu_offload
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
x = torch.ones(1, 2)
with torch.no_grad():
"""


@pytest.mark.parametrize("change", ["mul_(2)", "add_(1)", "copy_(torch.ones(1, 2))"])
def test_a_weight_that_is_on_meta(change: str, tmp_path: Path) -> None:
    source = f"""{MODEL}
    cpu_offload(net, execution_device="cpu")
    net[1].weight.{change}  # flagged
    net(x)
    net(x)
"""
    message = watched(tmp_path, source, CODE).only.message
    assert "1.weight` does nothing: between the calls of its module it is on meta" in message


@pytest.mark.parametrize("body", [
    "net[1].weight.mul_(2)\n    cpu_offload(net, execution_device='cpu')\n    net(x)\n",
    "with torch.device('meta'):\n        net = torch.nn.Linear(2, 1)\n    net.weight.mul_(2)\n",
])  # fmt: skip
def test_weights_that_were_changed_before_or_have_no_hook(body: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, f"{MODEL}    {body}", CODE).found
