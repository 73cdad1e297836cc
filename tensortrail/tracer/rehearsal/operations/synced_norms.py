"""Batch norm over several GPUs is made of kernels that the CPU lacks; these are their formulas."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def stats(given: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The mean of each channel, and one over its deviation."""
    wide = _wide(given)
    variance, mean = torch.var_mean(wide, _all_but_channels(given), correction=0)
    return mean, torch.rsqrt(variance + eps)


def gathered_with_counts(
    given: Tensor,
    means: Tensor,
    inverses: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Those of all parts together, each with as many values as its count says."""
    counts = counts.to(means.dtype).unsqueeze(-1)
    total = counts.sum()
    mean = (counts * means).sum(0) / total
    squares = (counts * (inverses.pow(-2) - eps + (means - mean).pow(2))).sum(0)
    for running, now in ((running_mean, mean), (running_var, squares / (total - 1))):
        if running is not None:
            running.copy_((1 - momentum) * running + momentum * now)
    return mean, torch.rsqrt(squares / total + eps)


def gathered(given: Tensor, means: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    """As `gathered_with_counts`, with one count for all parts."""
    *others, count = rest
    counts = torch.full((len(means),), count, dtype=means.dtype)
    combined: Any = gathered_with_counts
    found: tuple[Tensor, Tensor] = combined(given, means, *others, counts)
    return found


def normalized(
    given: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    inverse: Tensor,
    eps: float,
) -> Tensor:
    result = (_wide(given) - _spread(mean, given)) * _spread(inverse, given)
    if weight is not None:
        result = result * _spread(weight, given)
    if bias is not None:
        result = result + _spread(bias, given)
    return result.to(given.dtype)


def reduced_backward(
    grad: Tensor,
    given: Tensor,
    mean: Tensor,
    inverse: Tensor,
    weight: Tensor | None,
    *_: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The sums of a channel's gradients, alone and with its values, and what its parameters get."""
    dims = _all_but_channels(given)
    total = _wide(grad).sum(dims)
    with_values = (_wide(grad) * (_wide(given) - _spread(mean, given))).sum(dims)
    kind = given.dtype if weight is None else weight.dtype
    return total, with_values, (with_values * inverse).to(kind), total.to(kind)


def normalized_backward(
    grad: Tensor,
    given: Tensor,
    mean: Tensor,
    inverse: Tensor,
    weight: Tensor | None,
    total: Tensor,
    with_values: Tensor,
    counts: Tensor,
) -> Tensor:
    count = counts.sum()
    along = (_wide(given) - _spread(mean, given)) * _spread(inverse.pow(2) * with_values, given)
    result = (_wide(grad) - _spread(total, given) / count - along / count) * _spread(inverse, given)
    if weight is not None:
        result = result * _spread(weight, given)
    return result.to(given.dtype)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _all_but_channels(tensor: Tensor) -> list[int]:
    return [dim for dim in range(tensor.dim()) if dim != 1]


def _spread(channels: Tensor, like: Tensor) -> Tensor:
    return channels.view(1, -1, *[1] * (like.dim() - 2))


FORMULAS = {
    aten.batch_norm_stats.default: stats,
    aten.batch_norm_gather_stats.default: gathered,
    aten.batch_norm_gather_stats_with_counts.default: gathered_with_counts,
    aten.batch_norm_elemt.default: normalized,
    aten.batch_norm_backward_reduce.default: reduced_backward,
    aten.batch_norm_backward_elemt.default: normalized_backward,
}
