"""DataParallel over simulated devices."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


pytestmark = pytest.mark.usefixtures("two_devices")


class Seen(torch.nn.Linear):  # type: ignore[name-defined,misc]
    places: list[str] = []

    def forward(self, values: object) -> object:
        Seen.places.append(f"{values.device} {self.weight.device} {len(values)}")  # type: ignore[attr-defined,arg-type]
        return super().forward(values)


def test_each_device_computes_its_part_and_gradients_come_together() -> None:
    module = Seen(3, 2).cuda()
    values = torch.randn(5, 3, device="cuda")
    expected = torch.nn.functional.linear(values, module.weight, module.bias)
    Seen.places.clear()
    result = torch.nn.DataParallel(module)(values)
    assert sorted(Seen.places) == ["cuda:0 cuda:0 3", "cuda:1 cuda:1 2"]
    torch.testing.assert_close(result, expected)
    result.sum().backward()
    assert module.bias.grad.tolist() == [5, 5]
    assert module.bias.grad.device == torch.device("cuda:0")


def test_autocast_is_said_to_be_available() -> None:
    assert torch.amp.is_autocast_available("cuda")
