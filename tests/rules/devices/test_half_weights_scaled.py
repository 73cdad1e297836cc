"""A gradient scaler with weights of half precision."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import tensortrail

SOURCE = """\
import torch
model = torch.nn.Linear(4, 2){half}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
x = torch.ones(2, 4, dtype=model.weight.dtype)
scaler.scale(model(x).float().sum()).backward()
scaler.step(optimizer)
"""


def test_the_weights_are_named(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SOURCE.format(half=".half()"))
    code = compile(program.read_bytes(), str(program), "exec")
    with pytest.raises(ValueError, match="unscale"), tensortrail.trace(tmp_path / "run") as run:
        exec(code, {"__name__": "program"})
    (found,) = [each for each in run.findings() if each.code == "DEV613"]
    assert ".weight` and 1 more, made so at program.py:2" in found.message


def test_weights_in_full_precision(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SOURCE.format(half=""))
    with tensortrail.trace(tmp_path / "run") as run:
        exec(compile(program.read_bytes(), str(program), "exec"), {"__name__": "program"})
    assert not [each for each in run.findings() if each.code == "DEV613"]


def test_the_line_is_known_by_the_conversion(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        SOURCE.format(half="").replace("optimizer =", "model.half()\noptimizer =", 1)
    )
    code = compile(program.read_bytes(), str(program), "exec")
    with pytest.raises(ValueError, match="unscale"), tensortrail.trace(tmp_path / "run") as run:
        exec(code, {"__name__": "program"})
    (found,) = [each for each in run.findings() if each.code == "DEV613"]
    assert ", made so at program.py:3" in found.message
