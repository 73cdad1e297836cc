"""Modes of the user, devices, and torch's choices that depend on modes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from tensortrail.tracer.recording.begin import begin  # noqa: E402
from tests.tracer.transparent.twice import recorded, same_twice  # noqa: E402


class Calls(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(getattr(func, "__qualname__", str(func)) + str(sorted(kwargs or {})))
        return func(*args, **(kwargs or {}))


class Ops(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def everything() -> list[Any]:
    """A bit of all that the recorder looks at, with two devices so that it looks everywhere."""
    fresh = torch.empty(3)
    a = torch.ones(3).to(torch.float64).to("meta")
    b = torch.zeros(3)
    fresh.size()
    fresh.copy_(b)
    net = torch.nn.Linear(3, 3)
    net.to(torch.float64).to(torch.float32)
    net.load_state_dict(net.state_dict())
    net(b).sum().backward()
    c = b.clone().detach().contiguous()
    c.data = torch.ones(3)
    c.untyped_storage().resize_(12)
    c.resize_(2)
    c.set_(b.untyped_storage())
    with suppress(RuntimeError):
        torch.ones(2) @ a
    torch.cat([b, c], dim=0)[torch.tensor([0])]
    return [fresh.data_ptr() != 0, b.tolist(), a.shape, c.cpu().numpy().tolist()]


@pytest.mark.parametrize("mode", [Calls, Ops])
@pytest.mark.parametrize("outside", [True, False])
def test_a_mode_sees_the_same_calls(mode: type[Any], outside: bool, tmp_path: Path) -> None:
    with mode() as alone:
        everything()
    if outside:
        with mode() as watching, recorded(tmp_path):
            del watching.seen[:]
            everything()
            seen = list(watching.seen)
    else:
        with recorded(tmp_path), mode() as watching:
            everything()
        seen = watching.seen
    assert seen == alone.seen


def test_two_modes_of_the_user_around_the_recording(tmp_path: Path) -> None:
    def seen(around: Callable[[], Any]) -> list[list[str]]:
        with Calls() as below, around(), Calls() as above:
            del below.seen[:]
            everything()
            return [list(below.seen), list(above.seen)]

    assert seen(nullcontext) == seen(lambda: recorded(tmp_path))


def test_a_subclass_is_asked_the_same(tmp_path: Path) -> None:
    asked: list[str] = []

    class Asked(torch.Tensor):  # type: ignore[misc,name-defined]
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            asked.append(getattr(func, "__qualname__", str(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    def program() -> list[str]:
        del asked[:]
        meta = torch.ones(2, device="meta")
        x = torch.ones(3).as_subclass(Asked)
        y = x.to(torch.float64).clone() + torch.ones(3)
        y.copy_(x)
        y.data = x.data
        y.untyped_storage()
        y.data_ptr()
        torch.empty_like(y).fill_(1)
        torch.stack([x, x.cpu()])
        with suppress(RuntimeError):
            x @ meta
        return list(asked)

    assert len(same_twice(program, tmp_path)) > 10


def test_a_callable_that_cannot_be_hashed(tmp_path: Path) -> None:
    from torch.overrides import handle_torch_function, has_torch_function

    class Adding:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: Any) -> Any:
            if has_torch_function((x,)):
                return handle_torch_function(self, (x,), x)
            return x + 1

    class Answering(torch.Tensor):  # type: ignore[misc,name-defined]
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return type(func).__name__

    def program() -> Any:
        x = torch.ones(2)
        return Adding()(x), Adding()(x.as_subclass(Answering))

    assert same_twice(program, tmp_path)[1] == "Adding"


def test_a_device_as_a_context(tmp_path: Path) -> None:
    def program() -> Any:
        with torch.device("meta"):
            a = torch.ones(3)
            with torch.device("cpu"):
                b = torch.ones(3)
            c = torch.nn.Linear(2, 2).weight.device
        return a, b, c, torch.ones(3), torch.get_default_device()

    same_twice(program, tmp_path)


def test_the_default_device(tmp_path: Path) -> None:
    def program() -> Any:
        torch.set_default_device("meta")
        a = torch.ones(3), torch.get_default_device()
        with torch.device("cpu"):
            b = torch.ones(3), torch.get_default_device()
        torch.set_default_device("cpu")
        c = torch.ones(3)
        torch.set_default_device(None)
        return a, b, c, torch.ones(3)

    same_twice(program, tmp_path)


def test_the_default_device_set_inside_and_taken_off_after(tmp_path: Path) -> None:
    with recorded(tmp_path):
        torch.set_default_device("meta")
    assert torch.ones(2).device.type == "meta"
    torch.set_default_device(None)
    assert torch.ones(2).device.type == "cpu"
    torch.set_default_device("meta")
    with recorded(tmp_path):
        torch.set_default_device(None)
    assert torch.ones(2).device.type == "cpu"
    assert torch._C._len_torch_function_stack() == 0


def stack() -> list[str]:
    return [type(mode).__name__ for mode in torch.overrides._get_current_function_mode_stack()]


def test_a_recording_that_begins_inside_of_a_mode_and_ends_outside(tmp_path: Path) -> None:
    with Calls():
        running = begin(tmp_path)
    assert stack() == ["TrailMode"]
    running.stop()
    assert stack() == []


def test_a_recording_that_begins_outside_of_a_mode_and_ends_inside(tmp_path: Path) -> None:
    running = begin(tmp_path)
    with Calls():
        running.stop()
        assert stack() == ["Calls"]
    assert stack() == []


def test_a_recording_that_begins_inside_of_a_device_and_ends_outside(tmp_path: Path) -> None:
    with torch.device("meta"):
        running = begin(tmp_path)
    assert torch.ones(2).device.type == "cpu"
    running.stop()
    assert stack() == []


@pytest.mark.parametrize("training", [True, False])
def test_attention_takes_the_path_it_takes(training: bool, tmp_path: Path) -> None:
    def program() -> Any:
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        layer.train(training)
        attention.train(training)
        x = torch.randn(2, 5, 8)
        with torch.no_grad(), Ops() as ops:
            results = layer(x), *attention(x, x, x, need_weights=False)[:1]
        return results, ops.seen

    _, seen = same_twice(program, tmp_path)
    assert training or any("_transformer_encoder_layer_fwd" in op for op in seen)
