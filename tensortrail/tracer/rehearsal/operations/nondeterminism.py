"""`torch.use_deterministic_algorithms(True)`: the kernels of a GPU that refuse to work then.

The names in the messages are those of CUDA's kernels. They raise, or warn with `warn_only=True`,
although the CPU computes the same operations in one order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._prims_common import alert_not_deterministic

Asks = Callable[[dict[str, Any]], bool]
PROD, MULTIPLY, MAX, NO_REDUCTION = "prod", "multiply", 2, 0
ALWAYS = {
    "avg_pool3d_backward": "avg_pool3d_backward_cuda",
    "_adaptive_avg_pool2d_backward": "adaptive_avg_pool2d_backward_cuda",
    "_adaptive_avg_pool3d_backward": "adaptive_avg_pool3d_backward_cuda",
    "adaptive_max_pool2d_backward": "adaptive_max_pool2d_backward_cuda",
    "fractional_max_pool2d_backward": "fractional_max_pool2d_backward_cuda",
    "fractional_max_pool3d_backward": "fractional_max_pool3d_backward_cuda",
    "upsample_linear1d_backward": "upsample_linear1d_backward_out_cuda",
    "upsample_bilinear2d_backward": "upsample_bilinear2d_backward_out_cuda",
    "upsample_bicubic2d_backward": "upsample_bicubic2d_backward_out_cuda",
    "upsample_trilinear3d_backward": "upsample_trilinear3d_backward_out_cuda",
    "reflection_pad1d_backward": "reflection_pad1d_backward_out_cuda",
    "reflection_pad2d_backward": "reflection_pad2d_backward_cuda",
    "reflection_pad3d_backward": "reflection_pad3d_backward_out_cuda",
    "replication_pad1d_backward": "replication_pad1d_backward_cuda",
    "replication_pad2d_backward": "replication_pad2d_backward_cuda",
    "replication_pad3d_backward": "replication_pad3d_backward_cuda",
    "_ctc_loss_backward": "ctc_loss_backward_gpu",
    "grid_sampler_2d_backward": "grid_sampler_2d_backward_cuda",
    "grid_sampler_3d_backward": "grid_sampler_3d_backward_cuda",
}
"""The operation -> what CUDA calls it."""
SOMETIMES: dict[str, tuple[str, Asks]] = {
    "nll_loss2d_forward": (
        "nll_loss2d_forward_out_cuda_template", lambda given: given["reduction"] != NO_REDUCTION
    ),
    **dict.fromkeys(
        ("_embedding_bag_backward", "_embedding_bag_dense_backward"),
        ("embedding_bag_backward_cuda_max", lambda given: given["mode"] == MAX),
    ),
    "histc": (
        "_histc_cuda with floating point input", lambda given: given["self"].is_floating_point()
    ),
    "bincount": ("_bincount_cuda", lambda given: given.get("weights") is not None),
    "median": ("median CUDA with indices output", lambda given: "dim" in given),
    "nanmedian": ("median CUDA with indices output", lambda given: "dim" in given),
    "cumsum": ("cumsum_cuda_kernel", lambda given: _is_inexact(given)),
    "cumsum_": ("cumsum_cuda_kernel", lambda given: _is_inexact(given)),
    # The CPU refuses the other case itself.
    **dict.fromkeys(("put", "put_"), ("put_", lambda given: given.get("accumulate", False))),
    **dict.fromkeys(
        ("scatter_reduce", "scatter_reduce_"),
        ("scatter_reduce_cuda_prod_", lambda given: given["reduce"] == PROD),
    ),
    **dict.fromkeys(
        ("scatter", "scatter_"),
        ("scatter_reduce_cuda_kernel", lambda given: _is_legacy_reduction(given)),
    ),
}  # fmt: skip
"""The same for operations that refuse certain arguments alone."""


def check(func: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Raise or warn as the kernel of a GPU would. Ask only if determinism is wanted."""
    name = func._schema.name.removeprefix("aten::")
    if name in ALWAYS:
        alert_not_deterministic(ALWAYS[name])
    elif name in SOMETIMES:
        said, is_refused = SOMETIMES[name]
        names = (argument.name for argument in func._schema.arguments)
        if is_refused({**dict(zip(names, args, strict=False)), **kwargs}):
            alert_not_deterministic(said)


def _is_inexact(given: dict[str, Any]) -> bool:
    kind: torch.dtype = given.get("dtype") or given["self"].dtype
    return bool(kind.is_floating_point or kind.is_complex)


def _is_legacy_reduction(given: dict[str, Any]) -> bool:
    """`scatter(..., reduce=...)` of a tensor; sums of floating numbers have another way."""
    if "src" not in given or "reduce" not in given:
        return False
    return bool(given["reduce"] == MULTIPLY or not given["self"].is_floating_point())
