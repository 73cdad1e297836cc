"""An operation is given tensors, some of them in lists."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

INDEXING = ("index", "index_put_", "index_put", "_index_put_impl_", "_unsafe_index",
            "_unsafe_index_put")  # fmt: skip
NUMBERS = (int, float, bool, complex)
DEPENDS_ON_VALUES = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}


def by_autograd(device: Any) -> bool:
    """Autograd's C++ takes the tensors it works on for the CPU's, and asks for more like them."""
    return bool(device == state.HOST and torch._C._current_graph_task_id() != -1)


def inner_of(tensor: Any) -> Any:
    return tensor.inner if isinstance(tensor, SimTensor) else tensor


def unwrapped(value: Any) -> Any:
    """The value with the inner tensors; operations nest their operands in lists at most."""
    if isinstance(value, SimTensor):
        return value.inner
    if type(value) in (list, tuple):
        return type(value)(unwrapped(each) for each in value)
    return value


def operands(func: Any, args: Any, kwargs: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors an operation was given, by the names of its schema."""
    names = _names(func)
    for place, value in enumerate(args):
        if isinstance(value, Tensor):
            yield names[place], value
        elif isinstance(value, (list, tuple)):
            for each in value:
                if isinstance(each, Tensor):
                    yield names[place], each
    for name, value in kwargs.items():
        if isinstance(value, Tensor):
            yield name, value
        elif isinstance(value, (list, tuple)):
            for each in value:
                if isinstance(each, Tensor):
                    yield name, each


@functools.cache
def _names(func: Any) -> tuple[str, ...]:
    return tuple(each.name for each in func._schema.arguments)


def of_numbers(func: Any, args: Any) -> Any:
    """The code of `torch.jit` hands a number on where an operation takes a tensor of one."""
    if not any(type(each) in NUMBERS for each in args):
        return args
    kinds = [str(each.type) for each in func._schema.arguments]
    return tuple(
        torch.tensor(each) if type(each) in NUMBERS and kind == "Tensor" else each
        for each, kind in zip(args, kinds, strict=False)
    )


@functools.cache
def views_in_place(func: Any) -> bool:
    """Whether it changes the shape of its first operand, and nothing else."""
    return torch.Tag.inplace_view in func.tags


def waits(func: Any, named: Sequence[tuple[str, Tensor]]) -> bool:
    """Whether a GPU's kernel lets the host wait: what it gives depends on values."""
    if not _may_wait(func):
        return False
    if func._schema.name.partition("::")[2] not in INDEXING:
        return True
    return any(
        name == "indices"
        and (tensor.dtype in (torch.bool, torch.uint8) or not isinstance(tensor, SimTensor))
        for name, tensor in named
    )


@functools.cache
def _may_wait(func: Any) -> bool:
    name = func._schema.name.partition("::")[2]
    return name in INDEXING or not DEPENDS_ON_VALUES.isdisjoint(func.tags)


def as_copy(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """`prims.device_put(tensor, device, non_blocking)`, by which inductor moves, as torch's own."""
    if func is not torch.ops.prims.device_put.default:
        return func, args, kwargs
    non_blocking = kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
    options = {"device": torch.device(args[1]), "non_blocking": non_blocking}
    return torch.ops.aten._to_copy.default, args[:1], options
