"""What a convolution says of operands that lie on different devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal.operations import gpu_kernels
from tensortrail.tracer.rehearsal.operations.refusals import Arguments, Place, refuse
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor
from tensortrail.tracer.rehearsal.tensor.type_names import type_name

ON_THE_HOST = {
    torch._C._ConvBackend.Slow2d: "wrapper_CUDA___slow_conv2d_forward",
    torch._C._ConvBackend.SlowTranspose2d: "wrapper_CUDA_slow_conv_transpose2d",
    torch._C._ConvBackend.SlowTranspose3d: "wrapper_CUDA__slow_conv_transpose3d",
}
"""Convolutions of what lies on the CPU, and what a GPU has for them."""


def convolution(places: Sequence[Place], args: Arguments) -> None:
    _, first, home = places[0]
    chosen = _chosen(args) if home == "cpu" else None
    if chosen == torch._C._ConvBackend.Slow3d:
        raise gpu_kernels.absent("aten::slow_conv3d_forward", "CUDA")
    if chosen in ON_THE_HOST:
        name, _, place = next(each for each in places if each[2] != home)
        refuse(name, place, home, ON_THE_HOST[chosen])
    for name, tensor, place in places[1:]:
        if place == home:
            continue
        if "cpu" not in (place, home):
            refuse(name, place, home, "wrapper_CUDA__cudnn_convolution")
        if home != "cpu" and _is_by_channel(args):
            refuse(name, place, home, "wrapper_CUDA___conv_depthwise2d")
        other = " or input should be a MKLDNN tensor and weight is a dense tensor"
        raise RuntimeError(
            f"Input type ({_type(first)}) and {name} type ({_type(tensor)}) should be the same"
            + other * (home == "cpu")
        )


def _chosen(args: Arguments) -> Any:
    """How torch does a convolution on the CPU: a small one by a kernel of its own."""
    given = [each.inner if isinstance(each, SimTensor) else each for each in args[:9]]
    return torch._C._select_conv_backend(*given)


def _is_by_channel(args: Arguments) -> bool:
    """A convolution of each channel by itself, for which a GPU has a kernel of torch's own; cuDNN
    may take those of narrow numbers, and with the channels last."""
    given, weight, groups = args[0], args[1], args[8]
    transposed, channels = args[6], given.shape[1]
    plain = given.dtype in (torch.float32, torch.float64) and given.is_contiguous()
    by_channel = groups == channels > 1 and not weight.shape[0] % channels
    return bool(plain and by_channel and given.dim() in (3, 4) and not transposed)


def _type(tensor: Tensor) -> str:
    package = "torch.cuda" if isinstance(tensor, SimTensor) else "torch"
    return f"{package}.{type_name(tensor.dtype)}"
