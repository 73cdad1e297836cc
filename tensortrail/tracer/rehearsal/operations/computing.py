"""Operations on simulated devices are computed on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch._C import _current_graph_task_id

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.compiler.refused_calls import Told
from tensortrail.tracer.rehearsal.devices.devices import Devices
from tensortrail.tracer.rehearsal.devices.memory import Memory
from tensortrail.tracer.rehearsal.devices.spec import Spec
from tensortrail.tracer.rehearsal.lacks import NotRehearsed
from tensortrail.tracer.rehearsal.operations import autocast, device_mismatch, index_devices
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
from tensortrail.tracer.rehearsal.tensor.moved_in_place import follow, take_shape
from tensortrail.tracer.rehearsal.tensor.pinned_memory import Pinned
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

aten = torch.ops.aten
PUTS = {getattr(aten, name).default for name in index_devices.PUTS}
BACKWARD = (Tensor.backward, torch.autograd.grad)
"""What autograd makes is for tensors of any device."""
NESTED = "nested tensors of this layout are not simulated: use layout=torch.jagged in a rehearsal"
RESHAPES = {aten.resize_.default, aten.set_.source_Tensor, aten.set_.source_Storage_storage_offset}
NO_TASK, HOST = -1, -1
WITHOUT_MORE = nullcontext()
Named = Sequence[tuple[str, Tensor]]
"""The tensors an operation was given, by argument."""


class Computing(Devices):
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
            return self._on_the_host(func, args, kwargs, named)
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
        if not sims and func is aten._to_copy.default and kwargs.get("non_blocking"):
            self.sends(args[0], index)
        result = self._computed(func, args, kwargs, named, index)
        self._follow_shapes(func, args, kwargs, sims)
        if func is aten._pack_padded_sequence.default:
            return self._packed(result, index)
        if len(sims) > 1 and func._schema.name.startswith("aten::_foreach_"):
            return self._each_at_home(result, next(each for each in args if isinstance(each, list)))
        return self._wrapped(result, index, sims)

    def _on_the_host(self, func: Any, args: Any, kwargs: dict[str, Any], named: Named) -> Any:
        """It was given nothing that is simulated, and asks for nothing on a simulated device."""
        self.pending.read(func, named, False)
        if named:
            self._here.last = None
        elif args:
            args = of_numbers(func, args)
        with conjugates_resolved() if is_complex(named) else WITHOUT_MORE:
            return self.pinned.run(func, args, kwargs)

    def _computed(
        self, func: Any, args: Any, kwargs: dict[str, Any], named: Named, index: int
    ) -> Any:
        """The result as the CPU computes it; an error says what the GPU's would."""
        inner_args = unwrapped(args)
        inner_kwargs = {key: unwrapped(value) for key, value in kwargs.items()}
        if kwargs.get("device") is not None:
            inner_kwargs["device"] = torch.device("cpu")
        if inner_kwargs.get("pin_memory"):
            raise RuntimeError("Only dense CPU tensors can be pinned")
        try:
            with conjugates_resolved() if is_complex(named) else WITHOUT_MORE:
                return compute(func, inner_args, inner_kwargs)
        except RuntimeError as error:
            told = device_mismatch.retold(error, named) or self.memory.host_refused(index, error)
            if told is not None:
                raise told from None
            raise

    def _follow_shapes(
        self, func: Any, args: Any, kwargs: dict[str, Any], sims: Sequence[SimTensor]
    ) -> None:
        """What it changed in place has its new shape outside too."""
        if func in RESHAPES:
            for sim in sims:
                self._reshaped(sim)
        elif views_in_place(func):
            follow(func, args, kwargs)
        elif kwargs:
            for written in kwargs.values():  # `out=...`
                if isinstance(written, SimTensor) and written.inner.layout is torch.strided:
                    self._reshaped(written)

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
        elif non_blocking:
            self.sends(source, target.index)
        else:
            self.synchronized(target.index)
        return target

    def sends(self, source: Tensor, index: int) -> None:
        """From pageable memory torch waits until it is copied to where it is sent from."""
        if self.pinned.holds(source):
            self.pending.sends(source, self.streams.queue(index))

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
