"""STO229, `expanded-written`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

import tensortrail
from tensortrail.findings import Severity
from tests.rules.judged import severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(
    ("sizes", "write", "expected"),
    [
        ("n, 4, 4", "x[0, 1] = 2", WARNING),
        ("n, 4, 4", "x[:, :3] = 2", NOTE),
        ("n, 4, 4", "x[..., 3] = 2", NOTE),
        ("-1, n, 4", "x[:, i] = 2", WARNING),
        ("-1, n, 4", "x[i] = 2", NOTE),
        ("n, 4, 4", "x += 2", NOTE),
    ],
)
def test_a_write_to_rows_that_are_one(sizes: str, write: str, expected: Severity) -> None:
    source = (
        f"import torch\n\ndef f(n, i):\n    x = torch.eye(4)[None].expand({sizes})\n    {write}\n"
    )
    assert severity("STO229", source) is expected


@pytest.mark.parametrize("copied", [False, True])
def test_a_buffer_that_nothing_can_be_loaded_into(tmp_path: Path, copied: bool) -> None:
    pytest.importorskip("torch")
    source = """\
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("grid", torch.eye(3).expand(2, 3, 3))
net = Net()
net.load_state_dict(Net().state_dict())
"""
    program = tmp_path / "program.py"
    program.write_text(source.replace("3, 3))", "3, 3).clone())") if copied else source)
    code = compile(program.read_bytes(), str(program), "exec")
    with suppress(RuntimeError), tensortrail.trace(tmp_path / "run") as run:
        exec(code, {"__name__": "program"})
    said = [each.message for each in run.findings() if each.code == "STO229"]
    assert bool(said) is not copied
    assert all("`grid`, made at program.py:5, was expanded" in each for each in said)
