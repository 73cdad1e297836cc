"""The tensors with bytes of their own: a plain one itself, and what wrappers are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import torch
from torch.nn import Parameter

PLAIN = {torch.Tensor, Parameter, torch.nn.Buffer, torch.nn.parameter.Buffer}
DEEPEST_WRAPPER = 5
FUNCTIONAL = "torch._subclasses.functional_tensor"
SILENT: dict[type, Callable[[Any], Iterable[str]]] = {}
"""Wrapper classes without `__tensor_flatten__`, and the names of what they are made of: put here
by the hook of their library."""


def inner_tensors(tensor: Any, outer: str = "", depth: int = 0) -> Iterator[tuple[Any, str]]:
    """The tensors with bytes of their own, with the wrapper's type name."""
    kind = type(tensor)
    if kind in PLAIN:
        yield tensor, outer
        return
    names = _part_names(kind, tensor)
    if names is None:
        if is_real(tensor):
            yield tensor, outer or ("" if kind is torch.Tensor else kind.__name__)
    elif depth < DEEPEST_WRAPPER:
        for name in names:
            yield from inner_tensors(getattr(tensor, name), outer or kind.__name__, depth + 1)


def _part_names(kind: type, tensor: Any) -> Iterable[str] | None:
    """The names of the tensors a wrapper is made of; None for what is no wrapper."""
    flatten = getattr(kind, "__tensor_flatten__", None)
    if flatten is not None:
        return flatten(tensor)[0]  # type: ignore[no-any-return]
    return next((names(tensor) for base, names in SILENT.items() if issubclass(kind, base)), None)


def is_real(tensor: Any) -> bool:
    """Not a stand-in of the compiler or of a function transform."""
    return (
        isinstance(tensor, torch.Tensor)
        and type(tensor).__module__ not in ("torch._subclasses.fake_tensor", FUNCTIONAL)
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )


def computes(tensor: Any) -> bool:
    """Whether it may answer for its device and shape with code of the user's."""
    kind = type(tensor)
    return kind not in PLAIN and kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def simulated_home(tensor: Any) -> torch.device | None:
    """Where a wrapper says it is while GPUs are simulated, which replaces this; None without."""
    return None


def device_of(tensor: Any) -> torch.device:
    if computes(tensor):
        if (home := simulated_home(tensor)) is not None:
            return home
        with suppress(Exception):
            return torch.Tensor.untyped_storage(tensor).device
    return tensor.device


def is_wrapper(tensor: Any) -> bool:
    kind = type(tensor)
    if kind in PLAIN:
        return False
    tells = hasattr(kind, "__tensor_flatten__")
    return (tells or any(issubclass(kind, base) for base in SILENT)) and is_real(tensor)


def key_of(tensor: Any) -> int:
    """The storage's own key while it lives; 0 for a tensor without one."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0
