"""Modules that a test calls are moved to a simulated device, with what they are given.

The test wrote them for the CPU and knows nothing of it: results come back to the CPU, and what it
compares itself is compared there."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakSet

import torch
from torch import Tensor
from torch._C import _get_dispatch_mode
from torch.nn import Module
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

from tensortrail.tracer.identity.sites import file_of
from tensortrail.tracer.identity.unrecorded_frames import OURS
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.spread_calls import SpreadCalls
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

DEVICE = "cuda:0"
IsTest = Callable[[str], bool]
"""Whether a file is one of the tests."""
ITSELF = "it puts tensors on a device itself"
FAKING = torch._C._TorchDispatchModeKey.FAKE
BELOW = (os.path.dirname(torch.__file__) + os.sep, OURS, os.sep + "numpy" + os.sep)
"""Where a call of the test's goes through on its way to the tensors."""
MAY_MIX = ("copy_", "__setitem__", "__set__", "to", "type_as", "set_", "swap_")


class Call(NamedTuple):
    """What was moved, in the words of a reproduction."""

    module: str
    line: str
    """Of the test."""
    arguments: str

    def __str__(self) -> str:
        return f"{self.line}\n  module.to({DEVICE!r})  # {self.module}\n  module({self.arguments})"


class MovedCalls:
    """While a test runs: `begin` before its body, `end` after it."""

    def __init__(self, is_test: IsTest, spread: SpreadCalls | None = None) -> None:
        self._is_test = is_test
        self._spread = spread
        self._known: WeakSet[Module] = WeakSet()
        self._replaced = Replacements()
        self.calls: list[Call] = []
        self.left_alone = ""
        """Why the test is left as it is."""
        self.inside = False
        """Of a call that the test makes."""

    def begin(self) -> None:
        self.calls, self.left_alone = [], ""
        if self._spread is not None:
            self._spread.begin()
        plain, compare = Module.__call__, torch.testing.assert_close

        def called(module: Module, *args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            without_values = torch.compiler.is_compiling() or _get_dispatch_mode(FAKING) is not None
            if self.inside or without_values or not self._is_test(file_of(caller)):
                return plain(module, *args, **kwargs)
            self.inside = True
            try:
                return self._call(plain, module, args, kwargs, caller)
            finally:
                self.inside = False

        @functools.wraps(compare)
        def compared(*args: Any, **kwargs: Any) -> None:
            compare(*_on_host(args), **_on_host(kwargs))

        self._replaced.put(Module, "__call__", called)
        self._replaced.put(torch.testing, "assert_close", compared)
        self._mode = ComparedOnHost(self)
        self._mode.__enter__()

    def end(self) -> None:
        self._mode.__exit__(None, None, None)
        self._replaced.undo()

    def from_test(self, frame: FrameType | None) -> bool:
        """Whether the test's own line asks, through functions of torch and numpy alone."""
        while frame is not None and file_of(frame).startswith(BELOW[:2]):
            frame = frame.f_back
        while frame is not None and BELOW[2] in file_of(frame):
            frame = frame.f_back
        return frame is not None and self._is_test(file_of(frame))

    def put_by_test(self, result: Any, args: Any) -> None:
        """The test's line made a tensor on a device out of what was on none."""
        if not any(isinstance(each, SimTensor) for each in args):
            self.left_alone = ITSELF

    def _call(self, plain: Any, module: Module, args: Any, kwargs: Any, frame: FrameType) -> Any:
        own = list(_tensors(module))
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        if not self._may_move(module, [*own, *given]):
            return plain(module, *args, **kwargs)
        self._known.add(module)
        self.calls.append(_call_of(module, args, kwargs, frame))
        if not any(isinstance(each, SimTensor) for each in own):
            module.to(DEVICE)
        if self._spread is not None:
            self._spread.called(
                module,
                (args, kwargs),
                lambda each: plain(each, *Given().moved(args), **Given().moved(kwargs)),
            )
        moved = Given()
        result = plain(module, *moved.moved(args), **moved.moved(kwargs))
        moved.write_back()
        return _on_host(result)

    def _may_move(self, module: Module, tensors: Sequence[Tensor]) -> bool:
        if not tensors or self.left_alone:
            return False
        there = any(isinstance(each, SimTensor) for each in tensors)
        if there and not self.calls and not any(each in self._known for each in module.modules()):
            self.left_alone = ITSELF
        elif any(each.is_meta for each in tensors):
            self.left_alone = "it has tensors without data"
        elif any(hasattr(each, "_hf_hook") for each in module.modules()):
            self.left_alone = "accelerate places its modules"
        return not self.left_alone


class Given:
    """The arguments of one call."""

    def __init__(self) -> None:
        self._moved: dict[int, tuple[Tensor, Tensor, int]] = {}

    def moved(self, tree: Any) -> Any:
        return tree_map_only(Tensor, self._one, tree)

    def _one(self, tensor: Tensor) -> Tensor:
        if isinstance(tensor, SimTensor):
            return tensor
        if id(tensor) not in self._moved:
            there = tensor.to(DEVICE)
            self._moved[id(tensor)] = (tensor, there, there._version)
        return self._moved[id(tensor)][1]

    def write_back(self) -> None:
        """What was changed in place, the test sees."""
        for tensor, there, version in self._moved.values():
            if there._version != version and not tensor.requires_grad:
                tensor.copy_(there.detach())


class ComparedOnHost(TorchFunctionMode):  # type: ignore[misc]
    """A line of the test that mixes what was moved with what it kept gets both from the CPU."""

    def __init__(self, moved: MovedCalls) -> None:
        super().__init__()
        self._moved = moved

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        moved, kwargs = self._moved, kwargs or {}
        if torch.compiler.is_compiling() or moved.left_alone or moved.inside:
            return func(*args, **kwargs)
        caller = sys._getframe(1)
        if moved.calls and _needs_host(func, args, kwargs) and moved.from_test(caller):
            return func(*_on_host(args), **_on_host(kwargs))
        result = func(*args, **kwargs)
        if isinstance(result, SimTensor) and moved.from_test(caller):
            moved.put_by_test(result, tree_leaves((args, kwargs)))
        return result


def _needs_host(func: Any, args: Any, kwargs: Any) -> bool:
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    there = [each for each in tensors if isinstance(each, SimTensor)]
    if func is Tensor.numpy:
        return bool(there)
    mixed = any(not isinstance(each, SimTensor) and each.dim() for each in tensors)
    return bool(there) and mixed and getattr(func, "__name__", "") not in MAY_MIX


def _on_host(tree: Any) -> Any:
    return tree_map_only(SimTensor, lambda each: each.cpu(), tree)


def _tensors(module: Module) -> Iterator[Tensor]:
    yield from module.parameters()
    yield from module.buffers()


def _call_of(module: Module, args: Any, kwargs: Any, frame: FrameType) -> Call:
    kind = type(module)
    given = [*map(_shown, args), *(f"{name}={_shown(each)}" for name, each in kwargs.items())]
    line = f"{os.path.basename(file_of(frame))}:{frame.f_lineno}"
    return Call(f"{kind.__module__}.{kind.__qualname__}", line, ", ".join(given))


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"torch.zeros({tuple(value.shape)}, dtype={value.dtype}, device={DEVICE!r})"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)[:60]
    return f"<{type(value).__name__}>"
