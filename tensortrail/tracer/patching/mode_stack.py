"""Each thread has a stack of function modes; the recording's mode stands below the user's.

There, whatever the user puts on is taken off again by its owner and not ours in its place, and
ours sees calls as the user's modes leave them. Only `torch.set_default_device` is lower: it
insists on the bottom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch._C import (
    _get_function_stack_at,
    _len_torch_function_stack,
    _pop_torch_function_stack,
    _push_on_torch_function_stack,
)
from torch.overrides import TorchFunctionMode

M = TypeVar("M", bound=TorchFunctionMode)


def put_on(mode: TorchFunctionMode, below: int = 0) -> None:
    """Put it above the lowest `below` modes."""
    if not _len_torch_function_stack():
        _push_on_torch_function_stack(mode)
        return
    modes = [_pop_torch_function_stack() for _ in range(_len_torch_function_stack())][::-1]
    # One of a recording that was ended in another thread is still here.
    modes = [each for each in modes if type(each) is not type(mode)]
    if modes and modes[0] is _default_device():
        below = max(below, 1)
    for each in (*modes[:below], mode, *modes[below:]):
        _push_on_torch_function_stack(each)


def take_off(mode: TorchFunctionMode) -> int:
    """Take it off, wherever it is; how many modes are below it."""
    if _len_torch_function_stack() == 1 and _get_function_stack_at(0) is mode:
        _pop_torch_function_stack()
        return 0
    above: list[TorchFunctionMode] = []
    while _len_torch_function_stack():
        top = _pop_torch_function_stack()
        if top is mode:
            break
        above.append(top)
    below: int = _len_torch_function_stack()
    for each in reversed(above):
        _push_on_torch_function_stack(each)
    return below


def _default_device() -> TorchFunctionMode | None:
    return getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)


@contextmanager
def stepped_aside(kind: type[TorchFunctionMode]) -> Iterator[None]:
    """The mode of this kind is off for a while."""
    mode = ours(kind)
    if mode is None:
        yield
        return
    below = take_off(mode)
    try:
        yield
    finally:
        put_on(mode, below)


def ours(kind: type[M]) -> M | None:
    """The mode of this kind, if the thread has one on."""
    for place in range(_len_torch_function_stack()):
        mode: M = _get_function_stack_at(place)
        if type(mode) is kind:
            return mode
    return None
