"""Operations on simulated devices are computed on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch._C import _current_graph_task_id

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.compiler import script_constants, script_devices
from tensortrail.tracer.rehearsal.devices import nccl_groups
from tensortrail.tracer.rehearsal.operations import (
    autocast,
    device_mismatch,
    index_devices,
    nondeterminism,
)
from tensortrail.tracer.rehearsal.operations.copies import Copies
from tensortrail.tracer.rehearsal.operations.missing_kernels import (
    INSTEAD,
    compute,
    conjugates_resolved,
    is_complex,
)
from tensortrail.tracer.rehearsal.operations.operands import (
    as_copy,
    by_autograd,
    of_numbers,
    operands,
    unwrapped,
    waits,
)
from tensortrail.tracer.rehearsal.tensor import autograd_tensors
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

aten = torch.ops.aten
PUTS = {getattr(aten, name).default for name in index_devices.PUTS}
BACKWARD = (Tensor.backward, torch.autograd.grad)
"""What autograd makes is for tensors of any device."""
NO_TASK, HOST = -1, -1
WITHOUT_MORE = nullcontext()
Named = Sequence[tuple[str, Tensor]]
"""The tensors an operation was given, by argument."""


class Computing(Copies):
    def passed_last(self, index: int | None) -> None:
        """What was worked on last lies there: autograd's formulas make more like it."""
        self._here.last = index

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if nccl_groups.is_collective(func):
            nccl_groups.check(func, args)
        if func is script_constants.EQUAL and script_constants.is_comparing(args):
            return script_constants.are_equal(*args)
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
        return self._on_device(index, func, args, kwargs, named, sims)

    def _on_device(
        self,
        index: int,
        func: Any,
        args: Any,
        kwargs: dict[str, Any],
        named: Named,
        sims: Sequence[SimTensor],
    ) -> Any:
        """What it makes lies on the device of that index."""
        if func is aten.copy_.default:
            return self._copy(args, kwargs)
        if func in script_devices.answers:
            return script_devices.answers[func](*args)
        if torch._C._get_deterministic_algorithms():
            nondeterminism.check(func, args, kwargs)
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
        given = _index_of_first(args)
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


def _index_of_first(args: Any) -> int | None:
    """The device of the first simulated argument; of a list its first element counts."""
    for each in args:
        first = each[0] if type(each) in (list, tuple) and each else each
        if isinstance(first, SimTensor):
            return first.index
    return None
