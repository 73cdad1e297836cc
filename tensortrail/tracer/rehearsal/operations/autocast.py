"""A simulated device has autocast, as a GPU has.

Torch keeps the state ("cuda" on, to float16). Its kernels take simulated tensors for the CPU's:
for each call on them the CPU's autocast is on too, and what a GPU computes in float32 is
widened."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._pytree import tree_leaves, tree_map_only

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

IN_FULL = frozenset(
    """
    __pow__ __rdiv__ __rpow__ __rtruediv__ acos asin cosh tan sinh exp expm1 log log10 log1p log2
    pow reciprocal rsqrt erfinv softplus layer_norm group_norm rms_norm norm nuclear_norm
    cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss hinge_embedding_loss kl_div
    l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss
    soft_margin_loss triplet_margin_loss multi_margin_loss cross_entropy
    binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp softmax log_softmax softmin
    prod cumprod cumsum sum normalize
    """.split()
)
"""What a GPU's autocast computes in float32, as torch's documentation lists it."""
AS_GIVEN = frozenset(
    """
    cat concat concatenate stack hstack vstack dstack index_copy index_copy_ avg_pool1d max_pool3d
    adaptive_avg_pool3d adaptive_max_pool3d pad quantile nanquantile trace polar view_as_complex
    """.split()
)
"""What the autocast of the CPU alone widens, or gives one type."""
UNSAFE = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_"
    "logits\nor torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits "
    "are\nsafe to autocast."
)


def run(func: Any, args: Any, kwargs: Any) -> Any:
    """The call, with autocast if that of the GPU is on."""
    if not torch.is_autocast_enabled("cuda"):
        return func(*args, **kwargs)
    if not any(map(on_gpu, tree_leaves((args, kwargs)))):
        return func(*args, **kwargs)
    name = getattr(func, "__name__", "")
    if name == "binary_cross_entropy":
        raise RuntimeError(UNSAFE)
    if name in IN_FULL:
        args, kwargs = tree_map_only(Tensor, _widened, (args, kwargs))
        return func(*args, **kwargs)
    if name in AS_GIVEN:
        return func(*args, **kwargs)
    enabled, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.get_autocast_dtype("cuda"))
    try:
        return func(*args, **kwargs)
    finally:
        torch.set_autocast_enabled("cpu", enabled)
        torch.set_autocast_dtype("cpu", dtype)


def on_gpu(value: Any) -> bool:
    """A simulated tensor, or what the compiler has in its place."""
    if isinstance(value, SimTensor):
        return True
    stands_in = isinstance(value, Tensor) and type(value) not in (Tensor, Parameter)
    return stands_in and (value.is_cuda or state.from_torch(value.device) is not None)


def _widened(tensor: Tensor) -> Tensor:
    narrow = tensor.dtype in (torch.float16, torch.bfloat16) and on_gpu(tensor)
    return tensor.float() if narrow else tensor
