"""torch.compile: graphs, breaks and recompiles are those of the program alone."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

from tensortrail.tracer.recording.begin import begin  # noqa: E402
from tests.tracer.transparent.twice import same  # noqa: E402

pytestmark = pytest.mark.long

Program = Callable[[Any], Any]


class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("offset", torch.ones(4))

    def forward(self, x: Any) -> Any:
        return torch.relu(self.linear(x)) + self.offset


def measured(make: Callable[[], Program], order: str, directory: Path, backend: str) -> Any:
    """`c`: call, `t`: the recording begins, `s`: it stops."""
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    counter = CompileCounterWithBackend(backend)
    program = torch.compile(make(), backend=counter)
    x = torch.randn(4, 4)
    results = []
    graphs = []
    for step in order:
        if step == "t":
            running = begin(directory)
        elif step == "s":
            running.stop()
            assert not running.trouble
        else:
            results.append(program(x))
            graphs.append((counter.frame_count, counter.op_count))
    breaks = {name: dict(counters[name]) for name in ("graph_break", "recompiles", "stats")}
    return results, graphs, breaks


def check(make: Callable[[], Program], directory: Path, backend: str = "eager") -> Any:
    measured(make, "c", directory, backend)  # what is compiled once for all is out of the way
    alone = measured(make, "ccc", directory, backend)
    for order in ("tccsc", "ctcstcs"):
        got = measured(make, order, directory, backend)
        assert got[1:] == alone[1:], order
        assert same(got[0], alone[0]), order
    return alone


def plain() -> Program:
    weight = torch.randn(5, 4)

    def program(x: Any) -> Any:
        return torch.nn.functional.linear(x, weight).relu().sin() + torch.empty(5).fill_(2)

    return program


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_function(backend: str, tmp_path: Path) -> None:
    _, graphs, breaks = check(plain, tmp_path, backend)
    assert len(set(graphs)) == 1
    assert not breaks["graph_break"]


@pytest.mark.complete
def test_a_function_with_inductor(tmp_path: Path) -> None:
    assert check(plain, tmp_path, "inductor")[1][-1][0] == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_module_with_a_buffer(backend: str, tmp_path: Path) -> None:
    assert check(Net, tmp_path, backend)[1][-1][0] == 1


def test_a_module_that_was_moved_under_the_recording(tmp_path: Path) -> None:
    def moved() -> Program:
        net: Program = Net().to(torch.float64).to(torch.float32)
        net.load_state_dict(net.state_dict())  # type: ignore[attr-defined]
        return net

    check(moved, tmp_path)


NET = Net()


def saves(x: Any) -> Any:
    y = x.sin()
    torch.save(y, io.BytesIO())
    return y.cos()


def reads_numpy(x: Any) -> Any:
    import numpy

    return x.sin() + torch.from_numpy(numpy.ones(4, dtype=numpy.float32))


def reads_a_buffer(x: Any) -> Any:
    return x.sin() + torch.frombuffer(bytearray(16), dtype=torch.float32)


def state_dict(x: Any) -> Any:
    return x.sin() + NET.state_dict()["offset"]


def loads(x: Any) -> Any:
    y = x.sin()
    NET.load_state_dict(NET.state_dict())
    return NET(y)


def moves_a_module(x: Any) -> Any:
    y = x.sin()
    NET.to(torch.float32)
    return NET(y)


def resizes(x: Any) -> Any:
    y = x.sin()
    y.clone().untyped_storage().resize_(0)
    return y.cos()


def copies_a_storage(x: Any) -> Any:
    y = x.sin()
    y.untyped_storage().cpu()
    return y.cos()


def swaps_data(x: Any) -> Any:
    y = x.sin()
    z = y.clone()
    z.data = y
    return z.cos()


def swaps_tensors(x: Any) -> Any:
    a, b = torch.ones(4), torch.zeros(4)
    torch.utils.swap_tensors(a, b)
    return x.sin() + a


def sets_a_storage(x: Any) -> Any:
    y = x.sin()
    z = torch.empty(0)
    z.set_(y)
    return z.cos()


def breaks(x: Any) -> Any:
    y = x.sin()
    torch._dynamo.graph_break()
    z = y.to("cpu").clone()
    torch._dynamo.graph_break()
    return z.cos()


def waits_for_a_value(x: Any) -> Any:
    return x.cos() if float(x.sin().sum()) > 1000 else x.sin()


@torch._dynamo.disable  # type: ignore[untyped-decorator]
def left_alone(x: Any) -> Any:
    return x.clone().to(torch.float64).to("cpu")


def calls_what_is_left_alone(x: Any) -> Any:
    return left_alone(x.sin()).cos()


def starts_a_thread(x: Any) -> Any:
    import threading

    y = x.sin()
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return y.cos()


def trains(x: Any) -> Any:
    NET(x).sum().backward()
    gradient = NET.linear.weight.grad.clone()
    NET.zero_grad()
    return gradient


def hooks_a_gradient(x: Any) -> Any:
    x = x.clone().requires_grad_()
    y = x.sin()
    y.register_hook(lambda gradient: gradient * 2)
    torch._dynamo.graph_break()
    y.sum().backward()
    return x.grad


class Doubling(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def has_a_mode_of_its_own(x: Any) -> Any:
    with Doubling():
        y = x.sin()
    torch._dynamo.graph_break()
    with Doubling():
        return y.cos()


class Halving(torch.autograd.Function):  # type: ignore[misc,name-defined]
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        return x / 2

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        return gradient / 2


def custom_function(x: Any) -> Any:
    return Halving.apply(x.clone().requires_grad_()).sum()


INNER = torch.compile(NET, backend="eager")


def nested(x: Any) -> Any:
    y = INNER(x.sin())
    torch._dynamo.graph_break()
    return INNER(y)


@pytest.mark.parametrize(
    "program",
    [
        saves, reads_numpy, reads_a_buffer, state_dict, loads, moves_a_module, resizes,
        copies_a_storage, swaps_data, swaps_tensors, sets_a_storage, breaks, waits_for_a_value,
        calls_what_is_left_alone, starts_a_thread, trains, hooks_a_gradient, custom_function,
        has_a_mode_of_its_own, nested,
    ],
    ids=lambda program: program.__name__,
)  # fmt: skip
def test_a_region_that(program: Program, tmp_path: Path) -> None:
    check(lambda: program, tmp_path)
