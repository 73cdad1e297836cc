"""The running thread's stack of function modes: ours stands below the user's.

There, whatever the user puts on is taken off again by its owner and not ours in its place, and
ours sees calls as the user's modes leave them. Only the default device is lower: torch insists."""

from __future__ import annotations

from typing import TypeVar

from torch._C import (
    _get_function_stack_at,
    _len_torch_function_stack,
    _pop_torch_function_stack,
    _push_on_torch_function_stack,
)
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

M = TypeVar("M", bound=TorchFunctionMode)


def put_on(mode: TorchFunctionMode) -> None:
    above = [_pop_torch_function_stack() for _ in range(_len_torch_function_stack())]
    if above and isinstance(above[-1], DeviceContext):
        _push_on_torch_function_stack(above.pop())
    _push_on_torch_function_stack(mode)
    for other in reversed(above):
        _push_on_torch_function_stack(other)


def take_off(mode: TorchFunctionMode) -> None:
    above = []
    while _len_torch_function_stack():
        top = _pop_torch_function_stack()
        if top is mode:
            break
        above.append(top)
    for other in reversed(above):
        _push_on_torch_function_stack(other)


def ours(kind: type[M]) -> M | None:
    """The mode of this kind, if the thread has one on."""
    for place in range(_len_torch_function_stack()):
        mode: M = _get_function_stack_at(place)
        if type(mode) is kind:
            return mode
    return None
