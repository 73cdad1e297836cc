"""A device given as a number alone is a simulated GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from tensortrail.tracer.rehearsal.spec import Spec  # noqa: E402
from tensortrail.tracer.rehearsal.stage import Rehearsal  # noqa: E402


@pytest.fixture(autouse=True)
def _on_two_simulated_devices() -> Iterator[None]:
    with Rehearsal(Spec(2)):
        yield


def test_a_number_makes_a_device() -> None:
    assert torch.device(1) == torch.device("cuda", 1)
    with torch.device(1):
        assert torch.ones(2).device == torch.device("cuda:1")


def test_tensors_and_modules_move_to_numbers() -> None:
    assert torch.ones(2).to(1).device.index == 1
    assert torch.ones(2).to(device=1).device.index == 1
    assert torch.ones(2).to(0).to(1).device.index == 1
    assert torch.nn.Linear(2, 2).to(1).weight.device.index == 1


def test_factories_take_numbers() -> None:
    assert torch.tensor([1], device=1).device.index == 1
    assert torch.empty(2, device=1).device.index == 1
    assert torch.ones(2).new_zeros(2, device=1).device.index == 1


def test_a_number_beyond_the_last_device_is_refused() -> None:
    with pytest.raises(torch.AcceleratorError, match="invalid device ordinal"):
        torch.ones(2).to(2)
