"""Who holds the memory: by name, when a recording runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.recording.options import Options
from tensortrail.tracer.rehearsal.devices.spec import parse_spec


def test_parameters_are_named(tmp_path: Path) -> None:
    running = begin(tmp_path, Options(rehearse=parse_spec("cuda:1x64MiB")))
    try:
        model = torch.nn.Sequential(torch.nn.Linear(2048, 4096, bias=False)).to("cuda")
        with pytest.raises(torch.OutOfMemoryError) as caught:
            torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
    finally:
        running.stop()
    assert "32.00 MiB  Sequential.0.weight (float32 4096x2048)" in str(caught.value)
    assert len(model) == 1
