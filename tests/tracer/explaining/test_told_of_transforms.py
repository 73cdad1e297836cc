"""What is told of failures under `vmap`, `torch.jit.trace` and `torch.compile`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.tracer.explaining.test_explanation import explained  # noqa: E402

HERE = Path(__file__).name


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if text in line)


def test_a_total_that_vmap_does_not_map_over(tmp_path: Path) -> None:
    def summed(rows: Any) -> Any:
        total = torch.zeros(3)  # of all
        total += rows[0]
        return total

    told = explained(tmp_path, lambda: torch.func.vmap(summed)(torch.ones(5, 2, 3)))
    assert f"`total`, made at {HERE}:{line_of('# of all')}, is one tensor for all" in told
    assert "as in `x.new_zeros(...)`" in told


def test_sizes_under_vmap_that_do_not_fit_in_one_either(tmp_path: Path) -> None:
    def summed(row: Any) -> Any:
        total = row.new_zeros(2)
        total += row
        return total

    told = explained(tmp_path, lambda: torch.func.vmap(summed)(torch.ones(5, 3)))
    assert "`vmap` maps over" not in told


def test_running_statistics_under_vmap(tmp_path: Path) -> None:
    norm = nn.BatchNorm1d(3)
    told = explained(tmp_path, lambda: torch.func.vmap(norm)(torch.ones(5, 2, 3)))
    assert "BatchNorm1d writes its running statistics in place" in told


class Counting(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1  # counted
        return x * self.calls


def test_a_value_for_which_code_is_compiled_anew(tmp_path: Path) -> None:
    model = torch.compile(Counting(), backend="eager", fullgraph=True)
    told = explained(tmp_path, lambda: [model(torch.ones(2)) for _ in range(20)])
    line = line_of("# counted")
    assert "torch compiles anew for each value of `self.calls`" in told.replace("Torch", "torch")
    assert f"at {HERE}:{line}, and gives up" in told
