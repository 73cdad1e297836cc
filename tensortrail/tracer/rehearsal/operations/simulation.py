"""The heart of a rehearsal: tensors on simulated devices, what is computed there, how they move."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunction, _get_dispatch_mode
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.autograd import forward_ad

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.operations import plain_moves
from tensortrail.tracer.rehearsal.operations.computing import Computing
from tensortrail.tracer.rehearsal.operations.operands import inner_of
from tensortrail.tracer.rehearsal.tensor import autograd_tensors
from tensortrail.tracer.rehearsal.tensor.moved_in_place import become
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor
from tensortrail.tracer.rehearsal.tensor.type_names import dtype_named

aten = torch.ops.aten
MOVES = "Tensor.to"
TRACING = torch._C._TorchDispatchModeKey.PROXY


class Simulation(Computing):
    """What is computed is in `Computing`; this moves tensors to, from and between devices."""

    def to(self, tensor: Tensor, args: Any, kwargs: dict[str, Any]) -> Any:
        """`tensor.to(...)`, to, from or between simulated devices."""
        with DisableTorchFunction():
            copied = plain_moves.moved(self, tensor, args, kwargs)
        if copied is not None:
            return copied
        args, kwargs = self.target(*_as_other(args, kwargs))
        args, copy = _without_copy(args, kwargs)
        with DisableTorchFunction():
            device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
        within = autograd_tensors.inside(tensor)
        home = within.index if isinstance(within, SimTensor) else None
        target = home if device is None else self.index_of(device)
        if device is not None and device.type not in ("cpu", "cuda"):
            inner = inner_of(tensor)
            return plain_to(inner, device, dtype or inner.dtype)
        if target == home:
            same = not copy and dtype in (None, tensor.dtype) and _laid_out(tensor, memory_format)
            return tensor if same else self._converted(tensor, dtype, memory_format, copy)
        moved = tensor if dtype is None else self._converted(tensor, dtype, None, False)
        if (moved.requires_grad and torch.is_grad_enabled()) or forward_ad._current_level >= 0:
            moved = Move.apply(moved, home, target, non_blocking)
        elif within is not tensor:
            moved = self._operated(moved, target, non_blocking)
        else:
            moved = self.moved(moved.detach(), target, non_blocking)
        if memory_format not in (None, torch.preserve_format):
            moved = moved.contiguous(memory_format=memory_format)
        return moved

    def _converted(self, tensor: Tensor, dtype: Any, memory_format: Any, copy: bool) -> Any:
        options = {} if memory_format is None else {"memory_format": memory_format}
        with DisableTorchFunction():
            return plain_to(tensor, dtype or tensor.dtype, copy=copy, **options)

    def moved(self, tensor: Tensor, target: int | None, non_blocking: bool = False) -> Any:
        """The bytes on another device, without a thought for gradients."""
        if _get_dispatch_mode(TRACING) is not None or is_functorch_wrapped_tensor(tensor):
            return self._operated(tensor, target, non_blocking)
        source = tensor.index if isinstance(tensor, SimTensor) else None
        inner = inner_of(tensor)
        if inner.is_meta:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if target is not None and inner.layout is torch.strided:
            self.memory.ask(target, inner.nbytes)
        if self.races.on:
            self.races.moves(tensor, MOVES)
        if source is not None and target is not None:
            self.follows(source, target)
        with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad():
            copied = inner.detach().clone()
        if target is None:
            if source is not None and non_blocking:
                self.pending.add(self.pinned.hold(copied), self.streams.queue(source))
            elif source is not None:
                self.synchronized(source)
            return copied
        if source is not None:
            self.follows(target, source)
        made = self.wrap(copied, target)
        if source is None and non_blocking:
            self.sends(tensor, target)
        elif source is None:
            self.synchronized(target)
        return made

    def _operated(self, tensor: Tensor, target: int | None, non_blocking: bool) -> Any:
        """A move as what traces or transforms a function sees it: as an operation."""
        device = state.SURELY_HOST if target is None else torch.device("cuda", target)
        return aten._to_copy.default(tensor, device=device, non_blocking=non_blocking)

    def typed(self, tensor: Tensor, dtype: Any, non_blocking: bool) -> Any:
        """`tensor.type("torch.cuda.HalfTensor")`"""
        if isinstance(dtype, torch.dtype):
            return self.to(tensor, (dtype,), {})
        device = state.cuda() if "cuda" in str(dtype) else torch.device("cpu")
        return self.to(tensor, (device, dtype_named(dtype)), {"non_blocking": non_blocking})

    def set_data(self, tensor: Tensor, value: Tensor) -> None:
        """`tensor.data = value`: the object stays, what it is changes, on any device."""
        if _are_alike(tensor, value):
            within = value.detach()
            plain_data.__set__(tensor, within)  # C++ keeps a gradient of another size, too
            tensor.inner, tensor.index = within.inner, within.index
        elif isinstance(tensor, SimTensor) or isinstance(value, SimTensor):
            become(tensor, value.detach())
        else:
            plain_data.__set__(tensor, value)


def _are_alike(tensor: Tensor, value: Tensor) -> bool:
    return (
        isinstance(tensor, SimTensor)
        and isinstance(value, SimTensor)
        and tensor.layout is value.layout is torch.strided
    )


plain_data = torch._C.TensorBase.data
plain_to = torch._C.TensorBase.to


class Move(torch.autograd.Function):  # type: ignore[misc]
    """A copy to another device, whose gradient comes back."""

    generate_vmap_rule = True

    @staticmethod
    def forward(tensor: Tensor, home: Any, target: Any, non_blocking: bool) -> Any:
        return state.required().moved(tensor.detach(), target, non_blocking)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, ctx.home, ctx.target, _ = inputs

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Any:
        return state.required().moved(tangent, ctx.target)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        simulation = state.required()
        within = autograd_tensors.inside(grad)
        here = within.index if isinstance(within, SimTensor) else None
        back = grad if here == ctx.home else simulation.moved(grad.detach(), ctx.home)
        return back, None, None, None


def _as_other(args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """`.to(other, ...)` names its device and type."""
    kwargs = dict(kwargs)
    other = kwargs.pop("other", None)
    if args and isinstance(args[0], Tensor):
        other, args = args[0], args[1:]
    return (args if other is None else (other.device, other.dtype, *args)), kwargs


def _laid_out(tensor: Tensor, memory_format: Any) -> bool:
    """Its bytes lie as the format asks."""
    if memory_format in (None, torch.preserve_format):
        return True
    return bool(tensor.is_contiguous(memory_format=memory_format))


def _without_copy(args: Any, kwargs: dict[str, Any]) -> tuple[Any, bool]:
    """`.to(dtype, non_blocking, copy)` or `.to(device, dtype, non_blocking, copy)`"""
    place = 2 if args and isinstance(args[0], torch.dtype) else 3
    copy = kwargs.pop("copy", args[place] if len(args) > place else False)
    return args[:place], bool(copy)
