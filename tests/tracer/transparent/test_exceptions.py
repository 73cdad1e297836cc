"""Exceptions: the same ones, from the same calls, and no later or earlier."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.tracer.transparent.twice import recorded, same, same_twice, told  # noqa: E402


def shapes() -> Any:
    return torch.ones(2, 3) @ torch.ones(2, 3)


def devices() -> Any:
    return torch.ones(3) + torch.ones(3, device="meta").clone()


def meta_values() -> Any:
    return torch.ones(3, device="meta").tolist()


def copies_out_of_meta() -> Any:
    return torch.nn.Linear(2, 2, device="meta").to("cpu")


def unknown_device() -> Any:
    return torch.ones(3).to("nowhere")


def no_such_argument() -> Any:
    return torch.ones(3, nothing=1)


def no_self() -> Any:
    return torch.Tensor.to()


def a_string_for_a_tensor() -> Any:
    return torch.Tensor.copy_("x", 1)


def wrong_keys() -> Any:
    return torch.nn.Linear(2, 2).load_state_dict({"other": torch.ones(2)})


def missing_file() -> Any:
    return torch.load("/nowhere/at/all.pt")


def frozen_storage() -> Any:
    return torch.frombuffer(bytearray(16), dtype=torch.float32).untyped_storage().resize_(64)


def leaf_in_place() -> Any:
    return torch.ones(3, requires_grad=True).copy_(torch.zeros(3))


def twice_backward() -> Any:
    x = torch.ones(3, requires_grad=True).exp().sum()
    x.backward()
    x.backward()


def in_a_hook() -> Any:
    def hook(gradient: Any) -> Any:
        raise LookupError("mine") from OSError("cause")

    x = torch.ones(3, requires_grad=True)
    x.register_hook(hook)
    (x * 2).sum().backward()


def in_a_module_hook() -> Any:
    def hook(module: Any, args: Any) -> Any:
        raise ValueError("in a hook")

    net = torch.nn.Linear(2, 2)
    net.register_forward_pre_hook(hook)
    net(torch.ones(2))


def in_a_function() -> Any:
    class Failing(torch.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            try:
                shapes()
            except RuntimeError:
                raise TypeError("while handling") from None

    Failing.apply(torch.ones(3, requires_grad=True)).sum().backward()


def in_a_context() -> Any:
    try:
        shapes()
    except RuntimeError:
        devices()
        raise ValueError("another")  # noqa: B904


def with_a_note() -> Any:
    try:
        shapes()
    except RuntimeError as error:
        if sys.version_info >= (3, 11):
            error.add_note("in my program")
        raise


def the_very_same() -> Any:
    class Holding(torch.Tensor):  # type: ignore[misc,name-defined]
        error = KeyError("one object")

        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            raise cls.error

    try:
        torch.ones(2).as_subclass(Holding).to("cpu")
    except KeyError as error:
        return error is Holding.error, error.__context__, error.__cause__


@pytest.mark.parametrize(
    "program",
    [
        shapes, devices, meta_values, copies_out_of_meta, unknown_device, no_such_argument,
        no_self, a_string_for_a_tensor, wrong_keys, missing_file, frozen_storage, leaf_in_place,
        twice_backward, in_a_hook, in_a_module_hook, in_a_function, in_a_context, with_a_note,
        the_very_same,
    ],
    ids=lambda program: program.__name__,
)  # fmt: skip
def test_it_is_the_same(program: Callable[[], Any], tmp_path: Path) -> None:
    same_twice(program, tmp_path)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_error(kind: type[BaseException], tmp_path: Path) -> None:
    class Leaving(torch.Tensor):  # type: ignore[misc,name-defined]
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            raise kind("leave")

    x = torch.ones(3).as_subclass(Leaving)
    with recorded(tmp_path), pytest.raises(kind, match="leave") as caught:
        x.to(torch.float64)
    assert told(caught.value) == told(kind("leave"))


def test_an_interrupt_in_an_operation(tmp_path: Path) -> None:
    def interrupts(gradient: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    x = torch.ones(3, requires_grad=True)
    x.register_hook(interrupts)
    # Where the tests were started in the background, the signal is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with recorded(tmp_path), pytest.raises(KeyboardInterrupt):
            (x * 2).sum().backward()
    finally:
        signal.signal(signal.SIGINT, before)


def test_deep_recursion_ends_where_it_does(tmp_path: Path) -> None:
    def deepest(n: int = 0) -> int:
        try:
            torch.ones(1).to(torch.float64)
            return deepest(n + 1)
        except RecursionError:
            return n

    alone = deepest()
    with recorded(tmp_path):
        traced = deepest()
    assert alone - 40 <= traced <= alone
    assert same(deepest(), alone)


def test_generators_may_be_left_half_way(tmp_path: Path) -> None:
    def halves(x: Any) -> Generator[Any, Any, None]:
        try:
            while True:
                x = (yield x.to(torch.float64)) or x / 2
        finally:
            closed.append(x.clone())

    closed: list[Any] = []

    def program() -> Any:
        del closed[:]
        going = halves(torch.ones(2))
        seen = [next(going), next(going), going.send(torch.zeros(2))]
        going.close()
        return seen, list(closed)

    same_twice(program, tmp_path)


def test_warnings_are_the_same(tmp_path: Path) -> None:
    def program() -> list[tuple[str, str, int]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.ones(2, 3).T.resize_(0)
            torch.tensor(torch.ones(2))
            torch.nn.Linear(0, 2)
            torch.ones(2, names=("a",))
        return [(str(each.message), each.category.__name__, each.lineno) for each in caught]

    assert same_twice(program, tmp_path)
