"""SHD450 and SHD451: wrapper tensors at a load, views at a save."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.refused import ended, mended

QUANTIZED = """\
import torch
from torchao.quantization import Int8WeightOnlyConfig, quantize_
def build():
    return torch.nn.Sequential(torch.nn.Linear(32, 32))
model, fresh = build(), build()
quantize_(model, Int8WeightOnlyConfig())
fresh.load_state_dict(model.state_dict())
fresh(torch.ones(1, 32))
"""
VIEWS = """\
import torch
from safetensors.torch import save_file
tensors = {{"a": torch.ones(2, 3){view}, "b": torch.ones(3), "c": torch.ones(4, 4)[:, :2]{copy}}}
save_file(tensors, "out.safetensors")
"""


def test_quantized_weights_are_put_in(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    seen = ended(tmp_path, QUANTIZED, "SHD450")
    assert "`0.weight` is of `Int8Tensor` in the state dict" in seen.only.message
    assert "load_state_dict(model.state_dict(), assign=True)" in seen.fixed
    mended(tmp_path, seen, "SHD450")


def test_plain_weights_for_a_quantized_model(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    source = QUANTIZED.replace(
        "fresh.load_state_dict(model.state_dict())", "model.load_state_dict(fresh.state_dict())"
    )
    seen = ended(tmp_path, source, "SHD450")
    told = "`0.weight` is a plain tensor in the state dict, but of `Int8Tensor` in the model"
    assert told in seen.only.message
    assert "before they are quantized" in seen.only.fixes[0].description


def test_all_views_are_named(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    seen = ended(tmp_path, VIEWS.format(view=".t()", copy=""), "SHD451")
    assert "`a` and `c` are views" in seen.only.message
    mended(tmp_path, seen, "SHD451")


def test_no_view(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    seen = ended(tmp_path, VIEWS.format(view="", copy=".clone()"), "SHD451")
    assert seen.error is None
    assert not seen.found
