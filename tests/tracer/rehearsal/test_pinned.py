"""Pinned host memory on a machine that has none to give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")


pytestmark = pytest.mark.usefixtures("one_device")


FACTORIES: list[Callable[[], Any]] = [
    lambda: torch.empty(2, pin_memory=True),
    lambda: torch.ones(2, pin_memory=True),
    lambda: torch.tensor([1.0, 2.0], pin_memory=True),
    lambda: torch.empty_like(torch.ones(2), pin_memory=True),
    lambda: torch.empty_like(torch.ones(2, device="cuda"), device="cpu", pin_memory=True),
    lambda: torch.ones(2).pin_memory(),
    lambda: torch.ops.aten._pin_memory.default(torch.ones(2)),
]


@pytest.mark.parametrize("factory", FACTORIES)
def test_made_pinned(factory: Callable[[], Any]) -> None:
    made = factory()
    assert made.device.type == "cpu"
    assert made.is_pinned()
    assert made[:1].is_pinned()
    assert not made.clone().is_pinned()


def test_pinning_again_copies_nothing() -> None:
    once = torch.ones(2).pin_memory()
    assert once.pin_memory() is once


def test_the_device_has_no_pinned_memory() -> None:
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(2, device="cuda", pin_memory=True)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(2, device="cuda").pin_memory()
    assert not torch.ones(2, device="cuda").is_pinned()


def test_safetensors_reads_straight_to_the_device(tmp_path: Any) -> None:
    files = pytest.importorskip("safetensors.torch")
    files.save_file({"a": torch.arange(4.0, device="cuda")}, tmp_path / "a.safetensors")
    loaded = files.load_file(tmp_path / "a.safetensors", device="cuda")["a"]
    assert loaded.device == torch.device("cuda:0")
    assert loaded.tolist() == [0, 1, 2, 3]


class Packed(torch.Tensor):  # type: ignore[name-defined,misc]
    """Around another tensor; it answers for pinned memory itself, as torchao's weights do."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: Any) -> None:
        self.inner_values = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.is_pinned.default:
            return args[0].inner_values.is_pinned()
        if func is torch.ops.aten._pin_memory.default:
            return cls(args[0].inner_values.pin_memory())
        return NotImplemented


def test_the_class_of_a_wrapper_is_asked() -> None:
    packed = Packed(torch.ones(3))
    assert not packed.is_pinned()
    pinned = packed.pin_memory()
    assert type(pinned) is Packed
    assert pinned.is_pinned()
    assert pinned.inner_values.is_pinned()
    assert not packed.is_pinned()
