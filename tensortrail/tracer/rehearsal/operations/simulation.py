"""The heart of a rehearsal: operations on simulated devices are computed on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunction, _current_graph_task_id, _get_dispatch_mode
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.autograd import forward_ad

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.compiler.refused_calls import Told
from tensortrail.tracer.rehearsal.devices.devices import Devices
from tensortrail.tracer.rehearsal.devices.memory import Memory
from tensortrail.tracer.rehearsal.devices.spec import Spec
from tensortrail.tracer.rehearsal.lacks import NotRehearsed
from tensortrail.tracer.rehearsal.operations import autocast, device_mismatch, plain_moves
from tensortrail.tracer.rehearsal.operations.missing_kernels import (
    INSTEAD,
    compute,
    conjugates_resolved,
    is_complex,
)
from tensortrail.tracer.rehearsal.operations.operands import (
    as_copy,
    by_autograd,
    inner_of,
    of_numbers,
    operands,
    unwrapped,
    views_in_place,
    waits,
)
from tensortrail.tracer.rehearsal.streams.clocks import Order
from tensortrail.tracer.rehearsal.streams.current_stream import Streams
from tensortrail.tracer.rehearsal.streams.races import Races
from tensortrail.tracer.rehearsal.streams.unwaited_copies import Pending
from tensortrail.tracer.rehearsal.tensor import autograd_tensors
from tensortrail.tracer.rehearsal.tensor.moved_in_place import become, follow, take_shape
from tensortrail.tracer.rehearsal.tensor.pinned_memory import Pinned
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor, dtype_named

aten = torch.ops.aten
PUTS = {getattr(aten, name).default for name in device_mismatch.PUTS}
BACKWARD = (Tensor.backward, torch.autograd.grad)
"""What autograd makes is for tensors of any device."""
NESTED = "nested tensors of this layout are not simulated: use layout=torch.jagged in a rehearsal"
MOVES = "Tensor.to"
NO_TASK, HOST = -1, -1
WITHOUT_MORE = nullcontext()
TRACING = torch._C._TorchDispatchModeKey.PROXY


class Simulation(Devices):
    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.order = Order()
        self.memory = Memory(spec.count, spec.memory, spec.limited, self.order)
        self.pending = Pending(self.order)
        self.pinned = Pinned()
        self.streams = Streams(self.order, self)
        self.races = Races(self.order, self.memory, self.streams.known_queue)
        self.refused: Told = lambda func, args, kwargs, error: None
        """Called when a call that is traced for the compiler may not be; the recorder listens."""
        self._here = threading.local()

    def synchronized(self, index: int) -> None:
        """The host waits for what the current stream of a device was given."""
        self.order.host_waits_for(self.streams.queue(index))

    def follows(self, index: int, other: int) -> None:
        """What the device does next comes after what the other one was given."""
        if index != other:
            queue, before = self.streams.queue(index), self.streams.queue(other)
            self.order.wait(queue, self.order.mark(before))

    # --- operations ----------------------------------------------------------------------
    def passed_last(self, index: int | None) -> None:
        """What was worked on last lies there: autograd's formulas make more like it."""
        self._here.last = index

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        func, args, kwargs = as_copy(INSTEAD.get(func, func), args, kwargs)
        named = list(operands(func, args, kwargs))
        sims = [tensor for _, tensor in named if isinstance(tensor, SimTensor)]
        device = kwargs.get("device")
        index = self.index_of(device) if device is not None else None
        asks_for_more = device is not None and not named and not kwargs.get("pin_memory")
        if not sims and index is None and asks_for_more:
            index = self._home(device)
        if not sims and index is None:
            self.pending.read(func, named, False)
            if named:
                self._here.last = None
            elif args:
                args = of_numbers(func, args)
            with conjugates_resolved() if is_complex(named) else WITHOUT_MORE:
                return self.pinned.run(func, args, kwargs)
        if sims and not func.is_view:
            self.check_usable()
        if len(sims) != len(named) or any(sim.index != sims[0].index for sim in sims):
            device_mismatch.check(func, named, args)
        if func in PUTS and not isinstance(args[0], SimTensor):
            return self._put_on_the_host(func, args, kwargs, sims[0].index)
        self.pending.read(func, named, True)
        if self.races.on:
            self.races.ran(func, named)
        if sims and waits(func, named):
            self.synchronized(sims[0].index)
        if index is None and device is not None and self._home(device) is not None:
            index = sims[0].index  # it takes ours for the host's, and asks for more like it
        if index is None and device is not None and not by_autograd(device):
            return self._elsewhere(func, args, kwargs, sims[0].index)
        if index is None:
            index = sims[0].index
        self._here.last = index
        if func is aten.copy_.default:
            return self._copy(args, kwargs)
        inner_args = unwrapped(args)
        inner_kwargs = {key: unwrapped(value) for key, value in kwargs.items()}
        if device is not None:
            inner_kwargs["device"] = torch.device("cpu")
        if inner_kwargs.get("pin_memory"):
            raise RuntimeError("Only dense CPU tensors can be pinned")
        try:
            with conjugates_resolved() if is_complex(named) else WITHOUT_MORE:
                result = compute(func, inner_args, inner_kwargs)
        except RuntimeError as error:
            told = device_mismatch.retold(error, named) or self.memory.host_refused(index, error)
            if told is not None:
                raise told from None
            raise
        if func in RESHAPES:
            for sim in sims:
                self._reshaped(sim)
        elif views_in_place(func):
            follow(func, args, kwargs)
        elif kwargs:
            for written in kwargs.values():  # `out=...`
                if isinstance(written, SimTensor) and written.inner.layout is torch.strided:
                    self._reshaped(written)
        if func is aten._pack_padded_sequence.default:
            return self._packed(result, index)
        if len(sims) > 1 and func._schema.name.startswith("aten::_foreach_"):
            return self._each_at_home(result, next(each for each in args if isinstance(each, list)))
        return self._wrapped(result, index, sims)

    def _home(self, device: Any) -> int | None:
        """What a function of torch makes for itself lies where what it was given lies."""
        if device != state.HOST:
            return None
        home: int | None = getattr(self._here, "home", None)
        if home is None and _current_graph_task_id() != NO_TASK:
            return autograd_tensors.home(getattr(self._here, "last", None))
        return None if home == HOST else home

    def called(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A call of Python's, as far as it is one of torch's own functions."""
        given = next((each.index for each in args if isinstance(each, SimTensor)), None)
        if func in BACKWARD:
            return autocast.run(func, args, kwargs)
        if given is None:
            if _current_graph_task_id() == NO_TASK:
                return autocast.run(func, args, kwargs)
            given = HOST  # a hook's own call, not one of autograd's formulas
        before = getattr(self._here, "home", None)
        self._here.home = given
        try:
            return autocast.run(func, args, kwargs)
        finally:
            self._here.home = before

    def _each_at_home(self, results: Any, given: Any) -> Any:
        """Lists may hold tensors of several devices."""
        if not isinstance(results, (list, tuple)):
            return results
        return type(results)(
            self.wrap(result, one.index) if isinstance(one, SimTensor) else result
            for result, one in zip(results, given, strict=True)
        )

    def _elsewhere(self, func: Any, args: Any, kwargs: dict[str, Any], home: int) -> Any:
        """What it makes lies on no simulated device: `empty_like(x, device="meta")`."""
        result = self.pinned.run(func, unwrapped(args), kwargs)
        if func is aten._to_copy.default and isinstance(result, Tensor) and not result.is_meta:
            if kwargs.get("non_blocking"):
                self.pending.add(self.pinned.hold(result), self.streams.queue(home))
            else:
                self.synchronized(home)
        return result

    def _put_on_the_host(self, func: Any, args: Any, kwargs: dict[str, Any], index: int) -> Any:
        """The indices are moved to the host first."""
        self.synchronized(index)
        return self.pinned.run(func, unwrapped(args), kwargs)

    def _copy(self, args: Any, kwargs: dict[str, Any]) -> Any:
        target, source = args[0], args[1]
        non_blocking = kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
        inner_of(target).copy_(inner_of(source))
        if not isinstance(target, SimTensor):
            if non_blocking and self.pinned.holds(target):
                self.pending.add(target, self.streams.queue(source.index))
            else:
                self.synchronized(source.index)
        elif isinstance(source, SimTensor):
            self.follows(target.index, source.index)
        elif not non_blocking:
            self.synchronized(target.index)
        return target

    def _packed(self, result: Any, index: int) -> Any:
        data, batch_sizes = result
        return self.wrap(data, index), batch_sizes  # which a GPU's kernels read on the host

    def _wrapped(self, result: Any, index: int, sims: Sequence[SimTensor]) -> Any:
        if type(result) is Tensor:
            if result.is_meta:
                return result
            for sim in sims:
                if sim.inner is result:
                    return sim
            return self.wrap(result, index)
        if isinstance(result, (list, tuple)):
            return type(result)(self._wrapped(each, index, sims) for each in result)
        if hasattr(result, "__tensor_flatten__") and not isinstance(result, SimTensor):
            return self._unfolded(result, index, sims)
        return result

    def _unfolded(self, result: Any, index: int, sims: Sequence[SimTensor]) -> Any:
        """A kernel written in Python gave a tensor around tensors: those inside are simulated."""
        names, context = result.__tensor_flatten__()
        inside = {name: self._wrapped(getattr(result, name), index, sims) for name in names}
        size, stride = result.size(), result.stride()
        return type(result).__tensor_unflatten__(inside, context, size, stride)

    def wrap(self, inner: Tensor, index: int, like: Any = None) -> Any:
        self.taken()
        if inner.is_nested:
            raise NotRehearsed(NESTED)
        if inner.layout is torch.strided:
            self.memory.hold(inner.untyped_storage(), index, inner)
        kind = SimTensor if like is None else type(like)
        return SimTensor.__new__(kind, inner, index)

    def put(self, storage: Any, index: int, op: str) -> None:
        """Bytes of the host are the device's from now on, as if copied there."""
        self.taken()
        self.races.moves(None, op)
        self.memory.hold(storage, index, None)
        self.synchronized(index)

    def _reshaped(self, sim: SimTensor) -> None:
        """An operation changed the shape of the inner tensor in place: the outer one follows."""
        inner = sim.inner
        if sim.shape != inner.shape or sim.stride() != inner.stride():
            take_shape(sim, inner)
        self.memory.resized(inner.untyped_storage())

    # --- moves ---------------------------------------------------------------------------
    def to(self, tensor: Tensor, args: Any, kwargs: dict[str, Any]) -> Any:
        """`tensor.to(...)`, to, from or between simulated devices."""
        with DisableTorchFunction():
            copied = plain_moves.moved(self, tensor, args, kwargs)
        if copied is not None:
            return copied
        kwargs = dict(kwargs)
        other = kwargs.pop("other", None)
        if args and isinstance(args[0], Tensor):
            other, args = args[0], args[1:]
        if other is not None:
            args = (other.device, other.dtype, *args)
        args, kwargs = self.target(args, kwargs)
        args, copy = _without_copy(args, kwargs)
        with DisableTorchFunction():
            device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
        within = autograd_tensors.inside(tensor)
        home = within.index if isinstance(within, SimTensor) else None
        target = home if device is None else self.index_of(device)
        if device is not None and device.type not in ("cpu", "cuda"):
            inner = inner_of(tensor)
            return plain_to(inner, device, dtype or inner.dtype)
        if target == home and dtype in (None, tensor.dtype) and not copy:
            if memory_format in (None, torch.preserve_format):
                return tensor
            if tensor.is_contiguous(memory_format=memory_format):
                return tensor
        if target == home:
            return self._converted(tensor, dtype, memory_format, copy)
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
            self.memory.ask(target, inner.numel() * inner.element_size())
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
        if source is None and not non_blocking:
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

    # --- identity ------------------------------------------------------------------------
    def set_data(self, tensor: Tensor, value: Tensor) -> None:
        """`tensor.data = value`: the object stays, what it is changes, on any device."""
        if isinstance(tensor, SimTensor) or isinstance(value, SimTensor):
            become(tensor, value.detach())
        else:
            plain_data.__set__(tensor, value)


plain_data = torch._C.TensorBase.data
plain_to = torch._C.TensorBase.to
RESHAPES = {aten.resize_.default, aten.set_.source_Tensor, aten.set_.source_Storage_storage_offset}


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


def _without_copy(args: Any, kwargs: dict[str, Any]) -> tuple[Any, bool]:
    """`.to(dtype, non_blocking, copy)` or `.to(device, dtype, non_blocking, copy)`"""
    place = 2 if args and isinstance(args[0], torch.dtype) else 3
    copy = kwargs.pop("copy", args[place] if len(args) > place else False)
    return args[:place], bool(copy)
