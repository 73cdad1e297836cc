"""Every operation torch has samples for gives on a simulated device what the CPU gives."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # torch's own test helpers need it

from torch.utils._pytree import tree_leaves, tree_map  # noqa: E402

from tensortrail.tracer.rehearsal.devices.spec import parse_spec  # noqa: E402
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal  # noqa: E402
from tests.parts import first_only  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.real,
    pytest.mark.filterwarnings("ignore"),  # the samples use what is deprecated too
]
PARTS = 32
SAMPLES = {torch.float32: 3, torch.complex64: 1}
OTHERWISE = {
    "tensor_split": "the tensor that says where to split must lie on the host, and was moved too",
    **dict.fromkeys(("sparse.mm", "histogram", "histogramdd"), "has no kernel for a GPU"),
    "linalg.eig": "refuses on the CPU what it does not look at in a tensor subclass",
    "linalg.eigh": "the same",
    "as_strided": "looks at memory beyond a view, and only the view was moved",
    "arange": "lies on the host if no device is asked for",
}
WITHOUT_VALUES = ("empty", "rand", "bernoulli", "multinomial", "dropout", "uniform", "exponential",
                  "cauchy", "geometric", "log_normal", "normal", "rrelu")  # fmt: skip
"""What lay there before, or random numbers: device and shape are compared, no values."""


def operations(part: int, dtype: Any) -> list[Any]:
    from torch.testing._internal import common_methods_invocations as invocations

    wanted = [op for op in invocations.op_db if dtype in op.dtypes and op.name not in OTHERWISE]
    return wanted[part::PARTS]


def samples(op: Any, dtype: Any) -> Iterator[Any]:
    differentiable = dtype in op.backward_dtypes and dtype.is_floating_point
    made = op.sample_inputs("cpu", dtype, requires_grad=differentiable)
    return ((each.input, each.args, each.kwargs) for each in islice(made, SAMPLES[dtype]))


def on_device(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cuda().requires_grad_(value.requires_grad)
    named = isinstance(value, (str, torch.device)) and str(value) == "cpu"
    return torch.device("cuda") if named else value


def outcome(op: Any, inputs: Any) -> list[Any]:
    """Results and gradients, or the exception."""
    first, args, kwargs = inputs
    torch.default_generator.manual_seed(7)
    try:
        results: list[Any] = tree_leaves(op(first, *args, **kwargs))
        wanted = [leaf for leaf in tree_leaves(inputs) if _is_trained(leaf)]
        given = [leaf for leaf in results if _is_trained(leaf)]
        if given and wanted:
            results += torch.autograd.grad(
                given, wanted, [torch.ones_like(each) for each in given], allow_unused=True
            )
    except Exception as error:
        return [error]
    return [_materialized(each) for each in results]


def _materialized(value: Any) -> Any:
    """Some gradients are zeros without memory, which no dispatch mode may meet."""
    lazy = isinstance(value, torch.Tensor) and value.layout == torch.strided
    return value.clone() if lazy and value._is_zerotensor() else value


def _is_trained(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def difference(op: Any, here: list[Any], there: list[Any]) -> str:
    """In words; nothing if there is none."""
    if here and isinstance(here[0], Exception):
        return ""  # a GPU may have a kernel that the CPU lacks
    if len(here) != len(there):
        return f"{len(there)} results instead of {len(here)}: {there[0]!r}"
    for one, other in zip(here, there, strict=True):
        if isinstance(other, Exception):
            return repr(other)
        if isinstance(one, torch.Tensor) and (found := _differs(op, one, other)):
            return found
    return ""


def _differs(op: Any, one: Any, other: Any) -> str:
    if other.device.type != "cuda":
        return f"lies on {other.device}"
    kinds = [(each.dtype, each.shape, each.layout) for each in (one, other)]
    if kinds[0] != kinds[1]:
        return f"{kinds[1]} instead of {kinds[0]}"
    if any(word in op.name for word in WITHOUT_VALUES):
        return ""
    one, other = one.detach(), other.detach().cpu()
    if one.layout != torch.strided:
        one, other = one.to_dense(), other.to_dense()
    close = torch.allclose(other, one, rtol=1e-3, atol=1e-3, equal_nan=True)
    return "" if close else "other values"


@pytest.mark.parametrize("part", first_only(PARTS))
@pytest.mark.parametrize("dtype", SAMPLES, ids=str)
def test_results_and_gradients_are_those_of_the_cpu(dtype: Any, part: int) -> None:
    taken = [
        (op, inputs, outcome(op, inputs))
        for op in operations(part, dtype)
        for inputs in samples(op, dtype)
    ]
    with Rehearsal(parse_spec("cuda")):
        differing = {
            op.name: found
            for op, inputs, expected in taken
            if (found := difference(op, expected, outcome(op, tree_map(on_device, inputs))))
        }
    assert len(taken) > 320 // PARTS
    assert differing == {}
