"""Operands are called as the documentation of their operation calls them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.rules.shared.operands import Operand, called
from tensortrail.rules.timeline import Timeline
from tensortrail.tracer.noticing.argument_names import argument


@pytest.mark.parametrize(
    ("op", "place", "name"),
    [
        ("torch.nn.functional.linear", "0", "input"),
        ("torch.nn.functional.embedding", "1", "weight"),
        ("torch.conv2d", "2", "bias"),
        ("torch.cat", "0[1]", "tensors[1]"),
        ("Tensor.masked_fill", "0", "self"),
        ("Tensor.masked_fill", "1", "mask"),
        ("torch.add", "1", "other"),
        ("aten.add.Tensor", "1", "argument 2"),
        ("no.such.function", "0", "argument 1"),
        ("torch.add", "other", "other"),
    ],
)
def test_names(op: str, place: str, name: str) -> None:
    assert argument(op, place) == name


def test_no_module_is_imported_for_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_operations.py").write_text("def scaled(x, factor):\n    return x * factor\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert argument("own_operations.scaled", "1") == "argument 2"
    assert "own_operations" not in sys.modules


@pytest.mark.parametrize(
    ("arg", "told"), [("input", "`input`"), ("argument 2", "argument 2"), ("0", "argument 0")]
)
def test_in_messages(arg: str, told: str, no_run: Timeline) -> None:
    assert called(no_run, Operand(arg, "cpu", "", (2, 4), None)) == f"tensor 2x4 ({told})"


@pytest.fixture
def no_run() -> Timeline:
    return object()  # type: ignore[return-value]  # an operand without a storage asks nothing
