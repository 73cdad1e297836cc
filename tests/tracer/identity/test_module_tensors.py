"""The modules below a module, and the tensors that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tensortrail.tracer.identity.module_tensors import owned, parts  # noqa: E402


class Hides(nn.Module):  # type: ignore[misc]
    """What it is asked for by name is its own business."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.hidden = nn.Linear(2, 2), nn.Linear(2, 2)

    def named_modules(self, memo: Any = None, prefix: str = "", *_: Any) -> Iterator[Any]:
        yield prefix, self
        yield from self.seen.named_modules(memo, f"{prefix}.seen" if prefix else "seen")


def _shared() -> nn.Module:
    layer = nn.Linear(2, 2)
    return nn.Sequential(layer, nn.Sequential(layer, nn.ReLU()), layer)


def _without_a_part() -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model.register_module("absent", None)
    return model


def _around_itself() -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].above = model
    return model


def _answers_itself() -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model[0].named_modules = lambda *_: iter(())
    return model


@pytest.mark.parametrize("make", [
    lambda: nn.Linear(2, 2), _shared, _without_a_part, _around_itself, _answers_itself, Hides,
    lambda: nn.Sequential(Hides(), nn.Linear(2, 2)), lambda: nn.TransformerEncoderLayer(8, 2),
])  # fmt: skip
def test_the_parts_are_those_that_the_module_names(make: Any) -> None:
    model = make()
    found = parts(model)
    assert found == list(model.named_modules())
    assert found


def test_tensors_are_called_by_their_path() -> None:
    names = [name for name, _ in owned(_without_a_part(), "model")]
    assert names[:2] == ["model.0.weight", "model.0.bias"]
    assert "model.1.running_mean" in names
