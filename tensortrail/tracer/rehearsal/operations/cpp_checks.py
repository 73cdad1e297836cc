"""Torch's C++ checks calls before the dispatcher; simulated tensors pass for the CPU's there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.lacks import NotShared
from tensortrail.tracer.rehearsal.operations import copied_across, fourier, gpu_kernels
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
    """All goes where the first lies; C++ takes ours for there already."""
    if not any(isinstance(each, SimTensor) for each in args):
        return func(*args, **kwargs)
    moved = [each.to(args[0].device) if isinstance(each, Tensor) else each for each in args[1:4]]
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


def inner(func: Any, args: Any, kwargs: Any) -> Any:
    first, other = (*args, *kwargs.values())[:2]
    ours, theirs = first.device.type, other.device.type
    if ours != theirs:
        raise RuntimeError(
            f"Expected tensor to have {ours} DeviceType, but got tensor with {theirs} DeviceType "
            "(while checking arguments for inner())"
        )
    return state.required().called(func, args, kwargs)


def multiplied(func: Any, args: Any, kwargs: Any) -> Any:
    """`multi_dot` and what it was called before."""
    tensors = kwargs.get("tensors", args[0] if args else ())
    tensors = args if isinstance(tensors, Tensor) else tensors
    if found := _elsewhere(tensors):
        first, at, place = found
        raise RuntimeError(
            "multi_dot(): all tensors must be on the same device but tensor 0 is on "
            f"{first} and tensor {at} on {place}"
        )
    return state.required().called(func, args, kwargs)


def attention(func: Any, args: Any, kwargs: Any) -> Any:
    names = ("query", "key", "value")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    places = [given[each].device for each in names if isinstance(given.get(each), Tensor)]
    if len(places) == len(names) and len(set(places)) > 1:
        raise RuntimeError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{places[0]} key.device: {places[1]} and value.device: {places[2]} instead."
        )
    return state.required().called(func, args, kwargs)


def blocks(func: Any, args: Any, kwargs: Any) -> Any:
    """`block_diag`"""
    if found := _elsewhere(args):
        first, at, place = found
        raise RuntimeError(
            "torch.block_diag: input tensors must all be on the same device. Input 0 is on "
            f"device {first} and input {at} is on device {place}"
        )
    return state.required().called(func, args, kwargs)


def _elsewhere(tensors: Iterable[Tensor]) -> tuple[torch.device, int, torch.device] | None:
    """Where the first tensor is, and which of the others is not there, and where that one is."""
    places = [each.device for each in tensors]
    return next(
        ((places[0], at, place) for at, place in enumerate(places) if place != places[0]), None
    )


def meshed(func: Any, args: Any, kwargs: Any) -> Any:
    """`meshgrid`, and what is made of it"""
    tensors = args[0] if args and isinstance(args[0], (list, tuple)) else args
    if _elsewhere(tensors):
        raise RuntimeError("meshgrid expects all tensors to have the same device")
    return state.required().called(func, args, kwargs)


def normalized(func: Any, args: Any, kwargs: Any) -> Any:
    """`rms_norm`, for which a GPU has one kernel."""
    given = args[0] if args else kwargs["input"]
    weight = kwargs.get("weight", args[2] if len(args) > 2 else None)
    pair = [given, weight] if isinstance(weight, Tensor) else [given]
    if any(isinstance(each, SimTensor) for each in pair):
        if _elsewhere(pair) and not any(each.is_meta for each in pair):
            place, home = str(pair[1].device), str(given.device)
            refuse("weight", place, home, "wrapper_CUDA___fused_rms_norm")
        if given.dtype in gpu_kernels.WHOLE:
            raise gpu_kernels.missing("LayerNormKernelImpl", gpu_kernels.named(given.dtype))
    return state.required().called(func, args, kwargs)


def taken_along(func: Any, args: Any, kwargs: Any) -> Any:
    given = kwargs.get("indices", args[1] if len(args) > 1 else None)
    first = args[0] if args else kwargs["input"]
    if isinstance(given, Tensor) and given.device != first.device:
        raise RuntimeError(
            f"Expected tensor to have {first.device} Device, but got tensor with {given.device} "
            "Device (while checking arguments for torch.take_along_dim():)"
        )
    return state.required().called(func, args, kwargs)


def transformed(func: Any, args: Any, kwargs: Any) -> Any:
    """`stft`"""
    first = args[0] if args else kwargs["input"]
    window = kwargs.get("window", args[4] if len(args) > 4 else None)
    if isinstance(window, Tensor) and window.device != first.device:
        raise RuntimeError(
            "stft input and window must be on the same device but got self on "
            f"{first.device} and window on {window.device}"
        )
    if isinstance(first, SimTensor) and first.dtype in fourier.WIDER:
        size = kwargs.get("n_fft", args[1] if len(args) > 1 else 0)
        return fourier.in_half(func, args, kwargs, first.dtype, [size])
    return state.required().called(func, args, kwargs)


CHECKS: dict[Any, Callable[[Any, Any, Any], Any]] = {
    **dict.fromkeys((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu), recurrent),
    torch.nn.functional.ctc_loss: ctc_loss,
    **dict.fromkeys(
        (torch.quantile, torch.nanquantile, Tensor.quantile, Tensor.nanquantile), quantile
    ),
    **dict.fromkeys((torch.tensor_split, Tensor.tensor_split), split_by_tensor),
    **dict.fromkeys((torch.inner, Tensor.inner), inner),
    **dict.fromkeys((torch.linalg.multi_dot, torch.chain_matmul), multiplied),
    torch.nn.functional.scaled_dot_product_attention: attention,
    torch.block_diag: blocks,
    **dict.fromkeys((torch.meshgrid, torch.cartesian_prod), meshed),
    **dict.fromkeys((torch.nn.functional.rms_norm, torch.rms_norm), normalized),
    **copied_across.CHECKS,
    **dict.fromkeys((torch.take_along_dim, Tensor.take_along_dim), taken_along),
    **dict.fromkeys((torch.stft, Tensor.stft), transformed),
    torch.unravel_index: unravelled,
    Tensor.backward: backward,
    Tensor.grad.__set__: assign_gradient,
}
