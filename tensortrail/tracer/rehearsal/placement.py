"""Which operands may meet on a GPU, and what torch says when they may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal.tensor import SimTensor, type_name

aten = torch.ops.aten
COPIES = {aten.copy_.default, aten._to_copy.default, aten._foreach_copy_.default}
INDEXING = {
    aten.index.Tensor, aten.index_put_.default, aten.index_put.default,
    aten._index_put_impl_.default, aten._unsafe_index.Tensor, aten._unsafe_index_put.default,
}  # fmt: skip
CONVOLUTIONS = {aten.convolution.default, aten._convolution.default, aten.conv2d.default}
NEEDS_SAME = {
    "embedding", "embedding_dense_backward", "index_select", "gather", "scatter", "scatter_",
    "scatter_add", "scatter_add_", "index_add", "index_add_", "index_copy", "index_copy_",
    "nll_loss_forward", "nll_loss2d_forward", "bincount", "searchsorted", "bucketize",
}  # fmt: skip
"""Operations in which not even a scalar may lie on the host."""


def check(func: Any, named: Sequence[tuple[str, Tensor]]) -> None:
    """Raise as a GPU build would if these operands may not meet."""
    places = [(name, t, str(t.device)) for name, t in named]
    devices = {place for _, _, place in places}
    if len(devices) < 2 or func in COPIES:
        return
    if func in INDEXING:
        _check_index(places)
        return
    strict = func._schema.name.partition("::")[2] in NEEDS_SAME
    binding = [each for each in places if strict or each[2] != "cpu" or each[1].dim() > 0]
    if len({place for _, _, place in binding}) > 1:
        raise RuntimeError(_refusal(func, binding, strict))


def _check_index(places: Sequence[tuple[str, Tensor, str]]) -> None:
    home = places[0][2]
    for name, tensor, place in places[1:]:
        if place == home:
            continue
        if name.startswith("indices"):
            if place != "cpu":
                raise RuntimeError(
                    "indices should be either on cpu or on the same device as the indexed tensor "
                    f"({home})"
                )
        elif tensor.dim() or place != "cpu":
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but got {name} is on {place}, "
                f"different from other tensors on {home} (when checking argument in method "
                "wrapper_CUDA__index_put_)"
            )


def _refusal(func: Any, places: Sequence[tuple[str, Tensor, str]], strict: bool) -> str:
    name = func._schema.name.partition("::")[2]
    home = places[0][2]
    odd = next(each for each in places if each[2] != home)
    if func in CONVOLUTIONS:
        types = [_type(tensor) for _, tensor, _ in places[:2]]
        return f"Input type ({types[0]}) and weight type ({types[1]}) should be the same"
    if torch.Tag.pointwise in func.tags or name in ("where", "cat"):
        devices = sorted((home, odd[2]), key=lambda device: device == "cpu")
        listed = " and ".join(devices)
        return (
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{listed}!"
        )
    argument = odd[0]
    if name == "embedding":  # a GPU looks rows up by this
        name, argument = "index_select", "index"
    method = f"wrapper_CUDA__{name}" if strict else f"wrapper_CUDA_{name}"
    return (
        f"Expected all tensors to be on the same device, but got {argument} is on {odd[2]}, "
        f"different from other tensors on {home} (when checking argument in method {method})"
    )


def _type(tensor: Tensor) -> str:
    package = "torch.cuda" if isinstance(tensor, SimTensor) else "torch"
    return f"{package}.{type_name(tensor.dtype)}"
