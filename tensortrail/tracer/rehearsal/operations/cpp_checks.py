"""Torch's C++ checks calls before the dispatcher; simulated tensors pass for the CPU's there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.lacks import NotShared
from tensortrail.tracer.rehearsal.operations import (
    copied_across,
    operands_together,
    packed_sequences,
)
from tensortrail.tracer.rehearsal.operations.refusals import refuse
from tensortrail.tracer.rehearsal.tensor.host_reads import NOT_SHARED
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor


def exported(plain: Callable[..., Any]) -> Callable[..., Any]:
    """`to_dlpack`, which would give away a null pointer."""

    def to_dlpack(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tensor, SimTensor):
            raise NotShared(NOT_SHARED)
        return plain(tensor, *args, **kwargs)

    return to_dlpack


def recurrent(func: Any, args: Any, kwargs: Any) -> Any:
    """`lstm`, `gru` and the like: their checks, and no kernel that needs the host's memory."""
    packed = isinstance(args[3], (list, tuple))  # (data, batch_sizes, hx, parameters, ...)
    hidden, parameters = (args[2], args[3]) if packed else (args[1], args[2])
    hidden = list(hidden) if isinstance(hidden, (list, tuple)) else [hidden]
    if not any(isinstance(each, SimTensor) for each in (args[0], *hidden, *parameters)):
        return func(*args, **kwargs)
    if packed and args[0].device.type == "cpu":
        for each in parameters:
            if each.device.type != "cpu":  # its rows are not checked before they are multiplied
                refuse("mat1", "cpu", str(each.device), "wrapper_CUDA_addmm")
    for what, tensors in (("hidden", hidden), ("parameter", parameters)):
        for tensor in tensors:
            if tensor.device != args[0].device:
                raise RuntimeError(
                    f"Input and {what} tensors are not at the same device, found input tensor at "
                    f"{args[0].device} and {what} tensor at {tensor.device}"
                )
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        return state.required().called(func, args, kwargs)
    finally:
        torch._C._set_mkldnn_enabled(enabled)


def backward(func: Any, args: Any, kwargs: Any) -> Any:
    gradient = kwargs.get("gradient", args[1] if len(args) > 1 else None)
    if isinstance(gradient, Tensor) and gradient.device != args[0].device:
        raise RuntimeError(
            f"invalid gradient at index 0 - expected device {args[0].device} but got "
            f"{gradient.device}"
        )
    return func(*args, **kwargs)


def assign_gradient(func: Any, args: Any, kwargs: Any) -> Any:
    tensor, gradient = args
    if isinstance(gradient, Tensor) and gradient.device != tensor.device:
        ours, theirs = tensor.device, gradient.device
        if ours.type != theirs.type:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{theirs.type}' to a tensor "
                f"with device type '{ours.type}'. Please ensure that the gradient and the tensor "
                "are on the same device"
            )
        raise RuntimeError(
            f"attempting to assign a gradient located on device with index '{theirs.index}' to a "
            f"tensor located on device with index '{ours.index}'. Please ensure that the gradient "
            "and the tensor are on the same device"
        )
    return func(*args)


def ctc_loss(func: Any, args: Any, kwargs: Any) -> Any:
    """All goes where the first lies; C++ takes ours for there already.

    It makes tensors of lists of lengths, and fills their memory itself."""
    if not any(isinstance(each, SimTensor) for each in args):
        return func(*args, **kwargs)
    given = [each if isinstance(each, Tensor) else torch.tensor(each) for each in args[1:4]]
    moved = [each.to(args[0].device) for each in given]
    return state.required().called(func, (args[0], *moved, *args[4:]), kwargs)


def quantile(func: Any, args: Any, kwargs: Any) -> Any:
    """A number becomes a tensor in C++, past the dispatcher."""
    given = (*args, *kwargs.values())
    if not isinstance(given[0], SimTensor):
        return func(*args, **kwargs)

    def there(value: Any) -> Any:
        if type(value) is not float:
            return value
        made = torch.tensor(value, dtype=given[0].dtype)
        return state.required().moved(made, given[0].index)

    return state.required().called(
        func, tuple(map(there, args)), {k: there(v) for k, v in kwargs.items()}
    )


def split_by_tensor(func: Any, args: Any, kwargs: Any) -> Any:
    places = [*args[1:2], *kwargs.values()]
    given = next((each for each in places if isinstance(each, Tensor)), None)
    if given is not None and given.device.type != "cpu":
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on "
            f"{given.device}"
        )
    return state.required().called(func, args, kwargs)


def unravelled(func: Any, args: Any, kwargs: Any) -> Any:
    """Written in Python, with `torch.tensor` on the device of what it was given."""
    given = args[0] if args else kwargs["indices"]
    if not isinstance(given, SimTensor):
        return func(*args, **kwargs)
    found = func(given.inner, *args[1:], **{k: v for k, v in kwargs.items() if k != "indices"})
    return tuple(state.required().wrap(each, given.index) for each in found)


CHECKS: dict[Any, Callable[[Any, Any, Any], Any]] = {
    **dict.fromkeys((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu), recurrent),
    **dict.fromkeys((torch.nn.functional.ctc_loss, torch.ctc_loss), ctc_loss),
    **dict.fromkeys(
        (torch.quantile, torch.nanquantile, Tensor.quantile, Tensor.nanquantile), quantile
    ),
    **dict.fromkeys((torch.tensor_split, Tensor.tensor_split), split_by_tensor),
    **operands_together.CHECKS,
    **copied_across.CHECKS,
    **packed_sequences.CHECKS,
    torch.unravel_index: unravelled,
    Tensor.backward: backward,
    Tensor.grad.__set__: assign_gradient,
}
