"""cuFFT transforms half precision only in sizes that are powers of two, and so does a rehearsal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

WIDER = {torch.float16: torch.float32, torch.complex32: torch.complex64}
NARROWER = {wide: narrow for narrow, wide in WIDER.items()}
REFUSED = (
    "cuFFT only supports dimensions whose sizes are powers of two when computing in half "
    "precision, but got a signal size of"
)
NAMES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TRANSFORMS = [getattr(torch.fft, f"{name}{kind}") for kind in ("", "2", "n") for name in NAMES]
TO_REAL = ("irfft", "hfft")
"""Their input holds half of a signal, and one number."""


def transform(func: Any, args: Any, kwargs: Any) -> Any:
    given = args[0] if args else kwargs.get("input")
    if not isinstance(given, SimTensor) or given.dtype not in WIDER:
        return state.required().called(func, args, kwargs)
    sizes = _signal(func.__name__.removeprefix("fft_"), given, *args[1:], **kwargs)
    return in_half(func, args, kwargs, given.dtype, sizes)


def in_half(func: Any, args: Any, kwargs: Any, half: torch.dtype, sizes: list[int]) -> Any:
    if any(size & (size - 1) for size in sizes):
        raise RuntimeError(f"{REFUSED}{sizes}")
    args, kwargs = tree_map_only(Tensor, lambda each: each.to(WIDER[half]), (args, kwargs))
    result = state.required().called(func, args, kwargs)
    return result.to(NARROWER[result.dtype])


def _signal(
    name: str, given: Tensor, size: Any = None, dim: Any = None, *_: Any, **options: Any
) -> list[int]:
    """How long the signal is in each dimension that is transformed."""
    size = options.get("s", options.get("n", size))
    dim = options.get("dim", dim)
    sizes = _all(size)
    if dim is None:
        many = {"2": 2, "n": len(sizes) or given.dim()}.get(name[-1], 1)
        dim = range(-many, 0)
    dims = _all(dim)
    lengths = [given.shape[each] for each in dims]
    if name.rstrip("2n") in TO_REAL and not sizes:
        lengths[-1] = 2 * (lengths[-1] - 1)
    asked = [size if size != -1 else length for size, length in zip(sizes, lengths, strict=False)]
    return asked or lengths


def _all(value: Any) -> list[int]:
    if value is None:
        return []
    return list(value) if isinstance(value, Iterable) else [value]
