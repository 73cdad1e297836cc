"""Moves of plain tensors between the host and a simulated device go past the dispatcher: loops of
small moves are what a rehearsal is dearest for.

Only where a copy is all that happens. Everything else is left to `Simulation.to`, which gives the
same in all cases."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._C import (
    _current_graph_task_id,
    _DisableTorchDispatch,
    _dispatch_keys,
    _get_dispatch_stack_at,
    _get_tracing_state,
    _len_torch_dispatch_stack,
)
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad
from torch.nn import Parameter

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.simulating import Simulating
from tensortrail.tracer.rehearsal.tensor.simulated import SimParameter, SimTensor

NO_TASK = -1
HOST = state.HOST
HOSTS = (HOST, state.SURELY_HOST)


def _keys(tensor: Tensor) -> int:
    return int(_dispatch_keys(tensor).raw_repr())


with torch.inference_mode(False):
    PLAIN_KEYS = _keys(torch.empty(0, device="cpu"))
"""Those of plain memory of the host: not sparse, nested, conjugated, of `vmap` or of inference."""


def moved(
    simulation: Simulating, tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What `tensor.to(device)` gives; None where it may be more than a copy. Torch's function modes
    are off."""
    if kwargs or len(args) != 1:
        return None
    kind, device = type(tensor), args[0]
    if kind is SimTensor or kind is SimParameter:
        return _from_device(simulation, tensor, device)
    if (kind is Tensor or kind is Parameter) and _names_cuda(device) and _is_free(simulation):
        return _to_device(simulation, tensor, device)
    return None


def _names_cuda(device: Any) -> bool:
    if type(device) is str:
        return device.startswith("cuda")
    return type(device) is torch.device and device.type == "cuda"


def _names_host(device: Any) -> bool:
    if type(device) is str:
        return device == "cpu"
    return type(device) is torch.device and device in HOSTS


def _is_free(simulation: Simulating) -> bool:
    """Nobody but the simulation would see what the copy is made of."""
    return (
        _len_torch_dispatch_stack() == 1
        and getattr(_get_dispatch_stack_at(0), "simulation", None) is simulation
        and not simulation.races.on
        and _current_graph_task_id() == NO_TASK
        and not torch.is_inference_mode_enabled()
        and peek_interpreter_stack() is None
        and forward_ad._current_level < 0
        and _get_tracing_state() is None
    )


def _is_plain(tensor: Tensor) -> bool:
    """Its bytes are all there is to it."""
    return _keys(tensor) == PLAIN_KEYS and not (tensor.requires_grad and torch.is_grad_enabled())


def _copied(tensor: Tensor) -> Tensor:
    with _DisableTorchDispatch():
        return tensor.clone()


_around: Any = torch._C.TensorBase._make_wrapper_subclass
"""What is left out is as it is in plain memory that was just made."""


def _to_device(simulation: Simulating, tensor: Tensor, device: Any) -> Any:
    if not _is_plain(tensor):
        return None
    target = simulation.index_of(device)
    assert target is not None
    simulation.passed_last(None)
    memory = simulation.memory
    if memory.usable[target] is not None:
        memory.ask(target, tensor.numel() * tensor.element_size())
    copied = _copied(tensor)
    simulation.taken()
    memory.hold(copied.untyped_storage(), target, copied)
    made = _around(
        SimTensor, copied.size(), strides=copied.stride(), dtype=copied.dtype, device=HOST
    )
    made.inner, made.index = copied, target
    simulation.synchronized(target)
    return made


def _from_device(simulation: Simulating, tensor: Any, device: Any) -> Any:
    home = tensor.index
    if _names_cuda(device):
        return tensor if simulation.index_of(device) == home else None
    if not (_names_host(device) and _is_free(simulation) and _is_plain(tensor.inner)):
        return None
    if tensor.requires_grad and torch.is_grad_enabled():
        return None
    simulation.passed_last(home)
    copied = _copied(tensor.inner)
    simulation.synchronized(home)
    return copied
