"""Functions that copy one tensor into another, wherever the two lie."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

SCATTERS = ("select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter")
OTHER = ("src", "the_template")


def across(func: Any, args: Any, kwargs: Any) -> Any:
    """The second tensor is where the first one is, as its copy would be."""
    named = {name: kwargs[name] for name in OTHER if name in kwargs}
    given = [*args[:2], *named.values()]
    if not any(isinstance(each, SimTensor) for each in given):
        return func(*args, **kwargs)
    home, name = args[0] if args else kwargs["input"], func.__name__
    args = (*args[:1], *(_at(home, each, name) for each in args[1:2]), *args[2:])
    kwargs = {**kwargs, **{key: _at(home, each, name) for key, each in named.items()}}
    return state.required().called(func, args, kwargs)


def _at(home: Tensor, value: Any, name: str) -> Any:
    """Its copy there, which is no move of the program's own. The gradient is not copied back."""
    if not isinstance(value, Tensor) or value.device == home.device:
        return value
    copied = state.required().to(value, (home.device,), {})
    if copied.requires_grad:
        node = name.title().replace("_", "")
        copied.register_hook(partial(_refused, node, str(value.device)))
    return copied


def _refused(node: str, expected: str, gradient: Tensor) -> None:
    raise RuntimeError(
        f"Function {node}Backward0 returned an invalid gradient at index 1 - expected device "
        f"{expected} but got {gradient.device}"
    )


CHECKS: dict[Any, Callable[[Any, Any, Any], Any]] = {
    getattr(owner, name): across for owner in (torch, Tensor) for name in (*SCATTERS, "resize_as_")
}
