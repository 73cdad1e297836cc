"""Functions that copy one tensor into another, wherever the two lie."""

from __future__ import annotations

from collections.abc import Callable
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
    home = args[0] if args else kwargs["input"]
    args = (*args[:1], *(_at(home, each) for each in args[1:2]), *args[2:])
    kwargs = {**kwargs, **{name: _at(home, each) for name, each in named.items()}}
    return state.required().called(func, args, kwargs)


def _at(home: Tensor, value: Any) -> Any:
    """Its copy there, which is no move of the program's own."""
    if not isinstance(value, Tensor) or value.device == home.device:
        return value
    return state.required().to(value, (home.device,), {})


CHECKS: dict[Any, Callable[[Any, Any, Any], Any]] = {
    getattr(owner, name): across for owner in (torch, Tensor) for name in (*SCATTERS, "resize_as_")
}
