"""Wrapper tensors that are given to safetensors."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from tests.rules.recorded import WRAPPER, runs_without_findings, watched

CODE = "SHD443"
HEAD = """\
from safetensors.torch import save_file
path = folder + "/model.safetensors"
model = torch.nn.Linear(4, 2)
"""


@pytest.mark.parametrize(
    "save",
    [
        "save_file(model.state_dict(), path)\n",
        "try:\n    save_file({'a': model.weight, 'b': model.weight}, path)\n"
        "except RuntimeError:\n    pass\n",
    ],
)
def test_plain_tensors(save: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, WRAPPER + HEAD + save, CODE).found


def test_the_patch_of_quantized_weights(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    source = """\
import torch
from safetensors.torch import save_file
from torchao.quantization import Int8WeightOnlyConfig, quantize_
model = torch.nn.Sequential(torch.nn.Linear(64, 64))
quantize_(model, Int8WeightOnlyConfig())
save_file(model.state_dict(), folder + "/model.safetensors")  # flagged
"""
    seen = watched(tmp_path, source, CODE)
    assert "`Int8Tensor`" in seen.only.message
    runs_without_findings(tmp_path, seen.fixed, CODE)
