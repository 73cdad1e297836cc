"""Nothing lives longer, is referred to more, or is looked at more closely than without us."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.tracer.transparent.twice import recorded, same_twice  # noqa: E402


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    """What only a collector would free is kept too long."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_tensors_die_in_the_same_order(tmp_path: Path) -> None:
    def program() -> list[str]:
        order: list[str] = []

        def watched(name: str, tensor: Any) -> Any:
            weakref.finalize(tensor, order.append, name)
            weakref.finalize(tensor.untyped_storage(), order.append, f"storage of {name}")
            return tensor

        a = watched("a", torch.ones(3))
        b = watched("b", a.to(torch.float64))
        c = watched("c", a[1:])
        order.append("del a")
        del a
        order.append("del c")
        del c
        b = watched("new b", b.to("meta"))
        net = torch.nn.Linear(2, 2)
        watched("weight", net.weight)
        net.to(torch.float64)
        order.append("moved")
        watched("moved", net.weight.data.clone())
        net.weight = None
        order.append("del net")
        del net
        order.append("end")
        del b
        return order

    assert "storage of a" in same_twice(program, tmp_path)


def test_after_an_exception_nothing_is_held(tmp_path: Path) -> None:
    def program() -> list[str]:
        order: list[str] = []

        def fresh(name: str) -> Any:
            tensor = torch.ones(3, 4)
            weakref.finalize(tensor, order.append, name)
            return tensor

        kept: list[BaseException] = []
        calls: tuple[Callable[[], Any], ...] = (
            lambda: fresh("a") @ fresh("b"),
            lambda: torch.add(fresh("c"), torch.ones(3, 4, device="meta")),
            lambda: fresh("d").to("nowhere"),
            lambda: torch.cat([fresh("e"), fresh("f")[0]]),
            lambda: fresh("g").resize_(-1),
            lambda: fresh("h").untyped_storage().resize_(-1),
        )
        for call in calls:
            try:
                call()
            except Exception as error:
                kept.append(error)
            order.append("next")
        del kept
        order.append("end")
        return order

    program()  # what torch imports at its first error stays
    assert same_twice(program, tmp_path).count("next") == 6


def test_references_are_counted_the_same(tmp_path: Path) -> None:
    def program() -> list[int]:
        a = torch.ones(3)
        b = a.to("cpu")
        c = a.clone()
        storage = a.untyped_storage()
        net = torch.nn.Linear(2, 2)
        net.to(torch.float64)
        view = a.view(3)
        torch.stack([a, c])
        held = [a, b, c, storage, net, net.weight, view, torch.save, torch.float64]
        counts = [sys.getrefcount(each) for each in held[:7]]
        return [*counts, storage._use_count() if hasattr(storage, "_use_count") else 0]

    same_twice(program, tmp_path)


def test_memory_goes_at_once(tmp_path: Path) -> None:
    with recorded(tmp_path) as running:
        storages = running.recorder.storages
        a = torch.ones(1000)
        a.to(torch.float64)
        known = len(storages)
        del a
        assert len(storages) == known - 1


class Silent(torch.Tensor):  # type: ignore[misc,name-defined]
    def __repr__(self, **kwargs: Any) -> str:
        raise AssertionError("looked at")

    __str__ = __format__ = __reduce_ex__ = __bool__ = __len__ = __hash__ = __repr__  # type: ignore


def test_nobody_looks_at_a_value(tmp_path: Path) -> None:
    def program() -> Any:
        a = torch.ones(3).as_subclass(Silent)
        meta = torch.ones(3, device="meta")
        b = a.to(torch.float64) + a
        torch.empty(3).copy_(b)
        try:
            a @ meta.view(1, 3)
        except RuntimeError as error:
            return type(error)

    same_twice(program, tmp_path)


class Broken(torch.Tensor):  # type: ignore[misc,name-defined]
    """A wrapper whose inner tensors cannot be told."""

    fault: type[BaseException] = KeyError

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    def __tensor_flatten__(self) -> Any:
        raise self.fault("not built yet")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = [each.inner if isinstance(each, cls) else each for each in args]
        return func(*plain, **(kwargs or {}))


@pytest.mark.parametrize("fault", [KeyError, AttributeError, RecursionError, AssertionError])
def test_a_wrapper_that_does_not_tell_its_tensors(fault: type[Exception], tmp_path: Path) -> None:
    def program() -> Any:
        wrapper = Broken(torch.ones(3))
        wrapper.fault = fault
        moved = wrapper.to(torch.float64)
        copied = wrapper.clone(), torch.zeros(3).copy_(wrapper), torch.empty_like(wrapper).shape
        return moved, copied, wrapper + torch.ones(3)

    same_twice(program, tmp_path)


def test_copies_and_pickles(tmp_path: Path) -> None:
    def program() -> Any:
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
        net.to(torch.float64)
        copied = copy.deepcopy(net).state_dict()
        tensor = torch.ones(3).to(torch.float64)
        again = pickle.loads(pickle.dumps(tensor))
        weights = pickle.loads(pickle.dumps(net)).state_dict()
        return copied, again, weights, copy.copy(tensor)

    same_twice(program, tmp_path)


@pytest.mark.parametrize("swapping", [True, False])
def test_tensors_may_be_swapped(swapping: bool, tmp_path: Path) -> None:
    """Torch refuses to swap a tensor that somebody else refers to."""

    def program() -> Any:
        a, b = torch.ones(3), torch.zeros(2)
        torch.utils.swap_tensors(a, b)
        net = torch.nn.Linear(2, 2)
        weight = net.weight
        torch.__future__.set_swap_module_params_on_conversion(swapping)
        try:
            net.to(torch.float64)
            net.load_state_dict(torch.nn.Linear(2, 2).state_dict(), assign=swapping)
        finally:
            torch.__future__.set_swap_module_params_on_conversion(False)
        return a, b, net.state_dict(), weight is net.weight, net.weight.dtype

    same_twice(program, tmp_path)


def test_a_tensor_with_a_weak_reference_still_cannot_be_swapped(tmp_path: Path) -> None:
    def program() -> Any:
        a = torch.ones(3)
        watched = weakref.ref(a)
        torch.utils.swap_tensors(a, torch.zeros(3))
        return watched

    assert same_twice(program, tmp_path)[0] is RuntimeError
