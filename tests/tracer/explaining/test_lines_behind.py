"""An operand that no event tells of is followed through the variables of the traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import tensortrail  # noqa: E402


def angles(times: Any) -> Any:
    return times.cos() * 2


def combine(signal: Any, weights: Any) -> Any:
    real = weights[..., 0] / 2
    return signal + real


def beam(signal: Any, times: Any) -> Any:
    if signal.dim() == 1:
        weights = angles(times).unsqueeze(-1)
    weights = weights.abs()
    return combine(weights=weights, signal=signal)


def derived() -> None:
    delays = torch.arange(4.0, device="meta") * 0.5
    beam(torch.ones(4), delays)


class Packed(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))
        self.codes, self.scale = torch.ones(4, 4, device="meta").t() + 1, 2

    def forward(self, x: Any) -> Any:
        return x * self.weight + self.codes.t()


def of_an_attribute() -> None:
    Packed()(torch.ones(4, 4))


def filtered(x: Any, *kernels: Any) -> Any:
    for kernel in kernels:
        x = x * kernel
    return x


def of_a_list() -> None:
    filtered(torch.ones(3), *[torch.ones(3, device="meta") / 3] * 2)


def of_two() -> None:
    one, other = torch.ones(3, device="meta") * 2, torch.ones(3, device="meta") * 3
    torch.ones(3) + (one + other)


@pytest.mark.parametrize(
    ("program", "steps"),
    [
        (
            derived,
            [
                "combine: real = weights[..., 0] / 2",
                "beam: return combine(weights=weights, signal=signal)",
                "beam: weights = weights.abs()",
                "beam: weights = angles(times).unsqueeze(-1)",
                "derived: beam(torch.ones(4), delays)",
            ],
        ),
        (
            of_an_attribute,
            ['self.codes, self.scale = torch.ones(4, 4, device="meta").t() + 1, 2'],
        ),
        (
            of_a_list,
            [
                "filtered: for kernel in kernels:",
                "of_a_list: filtered(torch.ones(3), *[torch.ones(3, device=",
            ],
        ),
        (of_two, []),
    ],
)
def test_steps(tmp_path: Path, program: Callable[[], None], steps: list[str]) -> None:
    run = tensortrail.trace(tmp_path / "run")
    with pytest.raises(Exception), run:  # noqa: B017
        program()
    shown = [line for line in run.explanation.splitlines() if line.strip().startswith("from ")]
    assert len(shown) == len(steps), run.explanation
    for line, step in zip(shown, steps, strict=True):
        assert "test_lines_behind.py:" in line
        assert step in line


def compares_devices() -> None:
    made = torch.zeros(3, device="meta")
    derived = made * 2
    assert made.device == derived.device == torch.device("cpu")


def compares_shapes() -> None:
    found = torch.zeros(3, device="meta")
    assert found.shape == (4,)


def test_an_assert_that_compares_devices(tmp_path: Path) -> None:
    run = tensortrail.trace(tmp_path / "run")
    with pytest.raises(AssertionError), run:
        compares_devices()
    at, made, made_at, derived, *behind = run.explanation.splitlines()[1:]
    assert "the comparison at" in at
    assert made.split() == ["made", "meta", "float32", "3"]
    assert "made at tests/tracer/explaining/test_lines_behind.py" in made_at
    assert derived.split() == ["derived", "meta", "float32", "3"]
    assert [each.partition(": ")[2] for each in behind] == [
        "derived = made * 2",
        'made = torch.zeros(3, device="meta")',
    ]


def test_an_assert_that_asks_for_no_device(tmp_path: Path) -> None:
    run = tensortrail.trace(tmp_path / "run")
    with pytest.raises(AssertionError), run:
        compares_shapes()
    assert not run.explanation
