"""Kinds of tensors: subclasses, wrappers, sparse, nested, quantized, named, complex, empty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._pytree import tree_map  # noqa: E402

from tests.tracer.transparent.twice import same_twice  # noqa: E402


def looked_at(x: Any) -> Any:
    """All that the recorder acts on, as far as this kind can."""
    told = []
    calls: list[Callable[[], Any]] = [
        lambda: x.to(torch.float64), lambda: x.clone(), lambda: x.detach(), lambda: x.cpu(),
        lambda: x.contiguous(), lambda: torch.empty_like(x).shape, lambda: torch.zeros_like(x),
        lambda: x.new_empty(2).shape, lambda: x.new_zeros(2), lambda: x.to("meta").shape,
        lambda: x.clone().copy_(x), lambda: x.untyped_storage().nbytes(),
        lambda: x.data_ptr() != 0, lambda: x + x, lambda: x.clone().resize_(0).shape,
        lambda: x.tolist(), lambda: torch.cat([x, x]), lambda: x.data, lambda: x.is_shared(),
        lambda: setattr(x.clone(), "data", x), lambda: torch.nn.Parameter(x, False).shape,
        lambda: x.clone().share_memory_().shape, lambda: x.clone().set_(x).shape,
        lambda: x + torch.ones(2, device="meta"),
    ]  # fmt: skip
    for call in calls:
        try:
            told.append(call())
        except Exception as error:
            told.append((type(error), str(error)))
    return told


class Labelled(torch.Tensor):  # type: ignore[misc,name-defined]
    label = "none"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(made, cls):
            made.label = func.__name__
        return made


OPS: list[str] = []


class Doubled(torch.Tensor):  # type: ignore[misc,name-defined]
    """A wrapper that computes its shape and device itself, and counts what it is asked."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=inner.device,
            dispatch_sizes_strides_policy="sizes", dispatch_device=True,
        )  # fmt: skip
        made.inner = inner
        return made

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Doubled(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        OPS.append(str(func))
        args, kwargs = tree_map(lambda x: x.inner if type(x) is cls else x, (args, kwargs or {}))
        made = func(*args, **kwargs)
        return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, made)


def labelled() -> Any:
    x = torch.ones(2).as_subclass(Labelled)
    return looked_at(x), x.clone().label, x.to(torch.float64).label


def doubled() -> Any:
    del OPS[:]
    x = Doubled(torch.ones(2))
    x.to(torch.float64)
    x.clone().copy_(x)
    torch.empty_like(x)
    net = torch.nn.Linear(2, 2)
    net.weight = torch.nn.Parameter(Doubled(net.weight.detach()))
    net.to(torch.float64)
    net.state_dict()
    try:
        x + torch.ones(2, device="meta")
    except Exception as error:
        return type(error), list(OPS)
    return list(OPS)


def sparse() -> Any:
    x = torch.eye(2).to_sparse()
    return looked_at(x), looked_at(torch.eye(2).to_sparse_csr())


def nested() -> Any:
    parts = [torch.ones(2), torch.zeros(3)]
    strided = torch.nested.nested_tensor(parts)
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged)
    moved = jagged.to(torch.float64).clone()
    told = looked_at(strided)[15], [t.to(torch.float64) for t in strided.unbind()]
    return told, moved.values(), moved.offsets(), (jagged * 2).values()


def quantized() -> Any:
    x = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    return x.clone(), x.cpu(), x.dequantize(), x.int_repr(), x.to("cpu").q_scale()


def named() -> Any:
    x = torch.ones(2, 3, names=("a", "b"))
    return x.clone().names, x.to(torch.float64).names, x.rename(None), x.sum("a").names


def complex_numbers() -> Any:
    x = torch.ones(2, dtype=torch.complex64)
    return looked_at(x), looked_at(x.conj()), looked_at(x.imag), looked_at(torch._neg_view(x.real))


def empty() -> Any:
    return [looked_at(torch.ones(0, 2)), looked_at(torch.tensor(1.0)), looked_at(torch.Tensor())]


def low_precision() -> Any:
    x = torch.ones(2)
    return [x.to(dtype).to(torch.float32) for dtype in (torch.float8_e4m3fn, torch.bfloat16)]


def expanded() -> Any:
    x = torch.ones(1).expand(4)
    return looked_at(x), x.contiguous().untyped_storage().nbytes(), looked_at(x.T)


def parameters() -> Any:
    x = torch.nn.Parameter(torch.ones(2))
    lazy = torch.nn.LazyLinear(2)
    lazy.to(torch.float64)
    lazy.state_dict()
    lazy(torch.ones(1, 3, dtype=torch.float64))
    buffer = torch.nn.Buffer(torch.ones(2))
    return looked_at(x), type(lazy), lazy.state_dict(), looked_at(buffer)


def numpy() -> Any:
    array = torch.ones(2).numpy()
    shared = torch.from_numpy(array)
    array[0] = 5
    values = torch.asarray(array, copy=True), torch.as_tensor(array), torch.tensor(array)
    return shared, *values, array.tolist(), torch.frombuffer(bytearray(8), dtype=torch.int64)


def low_bits() -> Any:
    pytest.importorskip("torchao")
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    net = torch.nn.Sequential(torch.nn.Linear(4, 4))
    quantize_(net, Int8WeightOnlyConfig())
    weight = net[0].weight
    moved = net.to("cpu")(torch.ones(1, 4)), type(weight.clone()), type(weight.detach())
    return moved, weight.to(torch.float32).dequantize(), list(net.state_dict())


PROGRAMS = [
    labelled, doubled, sparse, nested, quantized, named, complex_numbers, empty, low_precision,
    expanded, parameters, numpy, low_bits,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_kind(program: Callable[[], Any], tmp_path: Path) -> None:
    outcome = same_twice(program, tmp_path)
    assert not isinstance(outcome, Exception)
