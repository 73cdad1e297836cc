"""The short way of moves gives what the long way gives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tensortrail.tracer.rehearsal.devices.spec import parse_spec  # noqa: E402
from tensortrail.tracer.rehearsal.operations import plain_moves  # noqa: E402
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal  # noqa: E402

Answer = dict[str, Any]


def _on_gpu(*sizes: int) -> Any:
    return torch.arange(12.0).view(*sizes).to("cuda")


@contextlib.contextmanager
def _seen(seen: list[str]) -> Iterator[None]:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Sees(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Sees():
        yield


def _under_a_mode() -> Any:
    seen: list[str] = []
    tensor = torch.ones(2)
    with _seen(seen):
        moved = tensor.to("cuda")
    return (moved, *seen)


def _in_inference() -> Any:
    with torch.inference_mode():
        return torch.ones(3).to("cuda").cpu()


def _without_grad() -> Any:
    with torch.no_grad():
        return torch.nn.Parameter(torch.ones(3)).to("cuda")


def _gradient() -> Any:
    weight = torch.ones(3, requires_grad=True)
    (weight.to("cuda").cpu() * 2).sum().backward()
    return weight.grad


def _dual() -> Any:
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.full((2,), 3.0))
        return torch.autograd.forward_ad.unpack_dual(dual.to("cuda")).primal


CASES: dict[str, Callable[[], Any]] = {
    "plain": lambda: torch.arange(4.0).to("cuda"),
    "empty": lambda: torch.empty(0).to("cuda"),
    "a scalar": lambda: torch.tensor(3).to("cuda:1"),
    "a device": lambda: torch.ones(2).to(torch.device("cuda", 1)),
    "expanded": lambda: torch.ones(1).expand(3).to("cuda"),
    "a strided view": lambda: torch.arange(12.0).view(3, 4).t()[1:].to("cuda"),
    "channels last": lambda: (
        torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last).to("cuda")
    ),
    "of another type": lambda: torch.ones(2).to("cuda", torch.float16),
    "with a keyword": lambda: torch.ones(2).to(device="cuda", non_blocking=True),
    "cuda()": lambda: torch.ones(2).cuda(),
    "conjugated": lambda: torch.tensor([1 + 2j]).conj().to("cuda"),
    "conjugated there": lambda: torch.tensor([1 + 2j]).to("cuda").conj().cpu(),
    "sparse": lambda: torch.eye(2).to_sparse().to("cuda"),
    "back": lambda: _on_gpu(3, 4).t()[1:].cpu(),
    "back by name": lambda: _on_gpu(12).to("cpu"),
    "back by number": lambda: _on_gpu(12).to(torch.device("cpu", 0)),
    "to where it is": lambda: _on_gpu(12).to("cuda"),
    "to where another is": lambda: _on_gpu(12).to(torch.ones(2)),
    "of another type there": lambda: _on_gpu(12).to(torch.float16),
    "to the other": lambda: _on_gpu(12).to("cuda:1"),
    "to where C++ says it is": lambda: _on_gpu(12).to(torch.device("cpu", 1)),
    "a parameter": lambda: torch.nn.Parameter(torch.ones(2)).to("cuda"),
    "a parameter there": lambda: torch.nn.Parameter(torch.ones(2).cuda()).detach().cpu(),
    "without gradients": _without_grad,
    "a gradient": _gradient,
    "in inference mode": _in_inference,
    "a tangent": _dual,
    "under vmap": lambda: torch.vmap(lambda x: x.to("cuda"))(torch.ones(2, 3)),
    "under another mode": _under_a_mode,
    "without data": lambda: torch.ones(2, device="meta").to("cuda"),
    "no such device": lambda: torch.ones(2).to("cuda:7"),
    "too large": lambda: torch.empty(1 << 28, dtype=torch.int64).to("cuda"),
}


def _told(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    attributes = ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf")
    told = [str(getattr(value, name)) for name in attributes]
    if value.layout is torch.strided:
        told += [str(value.stride()), str(value.storage_offset()), str(value.is_inference())]
    return [type(value).__name__, *told, str(value.cpu().to_dense().resolve_conj().tolist())]


def _answer(case: Callable[[], Any]) -> Answer:
    with Rehearsal(parse_spec("cuda:2x1GiB")) as rehearsal:
        simulation = rehearsal.simulation
        try:
            given = case()
        except Exception as error:
            told: Any = (type(error), str(error))
            given = None
        memory = [(str(one), str(two)) for one, two in
                  zip(simulation.memory.bytes, simulation.memory.blocks, strict=True)]  # fmt: skip
        times = [(str(queue), dict(queue.clock), queue.seen) for queue in simulation.order.queues()]
        if given is not None:
            told = [_told(each) for each in (given if isinstance(given, tuple) else (given,))]
        return {"told": told, "memory": memory, "times": times}


@pytest.mark.parametrize("name", CASES)
def test_the_long_way_gives_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short = _answer(CASES[name])
    monkeypatch.setattr(plain_moves, "moved", lambda *_: None)
    assert _answer(CASES[name]) == short


def test_plain_moves_take_the_short_way(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[Any] = []
    copied = plain_moves._copied

    def counted(tensor: Any) -> Any:
        copies.append(tensor)
        return copied(tensor)

    monkeypatch.setattr(plain_moves, "_copied", counted)
    torch.ones(2).to("cuda").cpu()
    torch.ones(2).cuda().to("cpu")
    assert len(copies) == 4
