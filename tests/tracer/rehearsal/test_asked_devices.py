"""Tensors lie on the device that was asked for, by name or by number."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


pytestmark = pytest.mark.usefixtures("two_devices")


def test_a_number_makes_a_device() -> None:
    assert torch.device(1) == torch.device("cuda", 1)
    with torch.device(1):
        assert torch.ones(2).device == torch.device("cuda:1")


def test_tensors_and_modules_move_to_numbers() -> None:
    assert torch.ones(2).to(1).device.index == 1
    assert torch.ones(2).to(device=1).device.index == 1
    assert torch.ones(2).to(0).to(1).device.index == 1
    assert torch.nn.Linear(2, 2).to(1).weight.device.index == 1


def test_a_module_sees_the_device_as_it_was_given() -> None:
    parse = torch._C._nn._parse_to
    assert parse("cuda")[0] == parse(torch.device("cuda"))[0] == torch.device("cuda")
    assert parse(1)[0] == parse(device=1)[0] == torch.device("cuda", 1)
    with torch.cuda.device(1):
        assert torch.nn.Linear(2, 2).to("cuda").weight.device.index == 1


def test_factories_take_numbers() -> None:
    assert torch.tensor([1], device=1).device.index == 1
    assert torch.empty(2, device=1).device.index == 1
    assert torch.ones(2).new_zeros(2, device=1).device.index == 1


def test_a_number_beyond_the_last_device_is_refused() -> None:
    with pytest.raises(torch.AcceleratorError, match="invalid device ordinal"):
        torch.ones(2).to(2)


@pytest.mark.parametrize("device", ["cpu", "meta", "cuda:1"])
def test_what_is_made_like_a_tensor_lies_where_it_was_asked_for(device: str) -> None:
    here = torch.ones(2, device="cuda:0")
    wanted = torch.device(device)
    aten = torch.ops.aten
    assert torch.empty_like(here, device=device).device == wanted
    assert here.new_empty(2, device=device).device == wanted
    assert here.to(device).device == wanted
    with torch._C.DisableTorchFunction():
        assert aten.empty_like.default(here, device=wanted).device == wanted
        assert aten._to_copy.default(here, device=wanted).device == wanted
