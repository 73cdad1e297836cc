"""Tensors of inference mode where gradients are computed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

CODE = "STO219"
FEATURES = """\
import torch
from torch import nn
backbone, head = nn.Linear(8, 4), nn.Linear(4, 2)
with torch.inference_mode():
    features = backbone(torch.ones(2, 8))
loss = head(features).sum(){mark}
loss.backward()
"""
MODEL = """\
import torch
from torch import nn
@torch.inference_mode()
def build():
    return nn.Linear(8, 4)
model = build()
model(torch.ones(2, 8)).sum().backward()
with torch.no_grad():
    model.weight.add_(1){mark}
"""


@pytest.mark.parametrize(("source", "line"), [(FEATURES, 4), (MODEL, 3)])
def test_it_is_named_and_mended(source: str, line: int, tmp_path: Path) -> None:
    seen = watched(tmp_path, source.format(mark="  # flagged"), CODE)
    assert f"made in inference mode at program.py:{line}" in seen.only.message
    runs_without_findings(tmp_path, seen.fixed, CODE)


def test_what_is_not_trained(tmp_path: Path) -> None:
    source = (
        FEATURES.format(mark="")
        .replace("loss.backward()", "")
        .replace("loss =", "with torch.no_grad():\n    loss =")
    )
    assert not watched(tmp_path, source, CODE).found
