"""A tensor becomes another, on another device, and stays the same object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunction
from torch.utils._mode_utils import no_dispatch

from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.simulated import (
    ATTRIBUTES,
    REAL_CLASS,
    SimTensor,
    attributes_of,
)

aten = torch.ops.aten
LAZY = (
    "a lazy module without its shapes cannot move in a rehearsal: run a first batch through it on "
    "the CPU"
)
SUCCESSOR = "_became"
PLAIN_DATA = torch._C.TensorBase.data


def install(replaced: Replacements) -> None:
    original = torch.utils.swap_tensors

    def swap_tensors(t1: Tensor, t2: Tensor) -> None:
        if isinstance(t1, SimTensor) or isinstance(t2, SimTensor):
            _swap(t1, t2)
        else:
            original(t1, t2)

    replaced.put(torch.utils, "swap_tensors", swap_tensors)


def _swap(one: Tensor, other: Tensor) -> None:
    """All of both, whatever device either is on."""
    torch.clear_autocast_cache()
    torch._C._swap_tensor_impl(one, other)
    kinds, attributes = (type(one), type(other)), (attributes_of(one), attributes_of(other))
    for each, kind, told in zip((other, one), kinds, attributes, strict=True):
        REAL_CLASS.__set__(each, kind)
        ATTRIBUTES.__set__(each, told)


def follow(func: Any, args: Any, kwargs: Any) -> None:
    """The outer tensor takes the shape that its inner one took in place: C++ may hold it."""
    before = torch._C._meta_in_tls_dispatch_include()
    with no_dispatch():
        torch._C._set_meta_in_tls_dispatch_include(True)
        try:
            func(*args, **kwargs)
        finally:
            torch._C._set_meta_in_tls_dispatch_include(before)


def take_shape(tensor: Tensor, like: Tensor) -> None:
    """The outer tensor takes the shape of its inner one, and stays what C++ holds."""
    shape, strides, offset = like.shape, like.stride(), like.storage_offset()
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    follow(aten.resize_.default, (tensor, [offset + last + 1 if like.numel() else 0]), {})
    follow(aten.as_strided_.default, (tensor, shape, strides, offset), {})


def become(tensor: Tensor, value: Tensor) -> None:
    """Every reference to `tensor` sees `value` from now on."""
    requires_grad = tensor.requires_grad
    made: Any = Tensor._make_subclass(tensor.__class__, value, requires_grad)
    attributes = dict(vars(tensor))
    grad = tensor.grad if tensor.is_leaf else None
    torch.clear_autocast_cache()  # it refers to the tensor, and torch refuses to swap it then
    torch._C._swap_tensor_impl(tensor, made)
    kinds = type(made), type(tensor)
    for each, kind in zip((tensor, made), kinds, strict=True):
        REAL_CLASS.__set__(each, kind)
    here, there = attributes_of(tensor), attributes_of(made)
    ours, theirs = dict(here), dict(there)
    here.clear()
    here.update(attributes, **theirs)
    there.clear()
    there.update(ours)
    there[SUCCESSOR] = tensor  # if C++ holds the old one: the gradient of something
    if grad is not None:
        _give_gradient(tensor, grad)  # it moves by itself, or not
    _take_hooks(tensor, made)


def _give_gradient(tensor: Tensor, grad: Tensor) -> None:
    """Torch asks nothing of a gradient that was there before, nor of an older graph's."""
    if grad.dtype != tensor.dtype:
        tensor.grad_dtype = None
    with DisableTorchFunction(), _as_large_as(tensor, grad):
        tensor.grad = grad


@contextmanager
def _as_large_as(tensor: Tensor, grad: Tensor) -> Iterator[None]:
    """Sharded training keeps the gradient of the whole parameter while it has only a part of it."""
    if tensor.shape == grad.shape:
        yield
    elif isinstance(tensor, SimTensor):
        take_shape(tensor, grad)
        yield
        take_shape(tensor, tensor.inner)
    else:
        kept = PLAIN_DATA.__get__(tensor)
        PLAIN_DATA.__set__(tensor, torch.empty(grad.shape, dtype=tensor.dtype))
        yield
        PLAIN_DATA.__set__(tensor, kept)


def _take_hooks(tensor: Any, before: Any) -> None:
    """Hooks stay with the tensor; a graph that holds what it was goes on to what it is."""
    if tensor._backward_hooks is not None:
        tensor._backward_hooks = tensor._backward_hooks  # C++ has them at what it was
    if tensor._post_accumulate_grad_hooks is not None:
        tensor._post_accumulate_grad_hooks = tensor._post_accumulate_grad_hooks
    if before._use_count() > 1 and before.is_leaf and before.requires_grad:
        with DisableTorchFunction():
            before.grad = None
        before._post_accumulate_grad_hooks = {0: _handed_on}


def _handed_on(before: Any) -> None:
    """A backward pass through a graph from before the move ends at the tensor that moved."""
    tensor, new = vars(before)[SUCCESSOR], before.grad
    with DisableTorchFunction():
        before.grad = None
    if tensor.grad is None:
        _give_gradient(tensor, new)
    else:
        tensor.grad.add_(new)
    for hook in (tensor._post_accumulate_grad_hooks or {}).values():
        hook(tensor)
