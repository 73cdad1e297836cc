"""Moves that Python asks for while GPUs are simulated."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.tensor import autograd_tensors, wrapper_subclasses
from tensortrail.tracer.rehearsal.tensor.simulated import SILENT, SimTensor, is_plain

TO, CUDA = Tensor.to, Tensor.cuda
"""As torch has them: while a rehearsal is on, others stand there."""
OURS = (Tensor, Parameter, SimTensor)


def moved(simulation: Simulation, func: Any, args: Any, kwargs: Any) -> Any:
    tensor = args[0]
    if isinstance(tensor, SimTensor):
        return simulation.to(tensor, args[1:], kwargs)
    if _asks_for_itself(tensor):
        return type(tensor).__torch_function__(Tensor.to, (type(tensor),), args, kwargs)
    if not is_plain(type(tensor)):
        return wrapper_subclasses.moved(simulation, func, tensor, args[1:], kwargs)
    asked = kwargs.get("device", args[1] if len(args) > 1 else kwargs.get("other"))
    there = _names_cuda(asked) or any(
        isinstance(each, SimTensor) for each in (asked, autograd_tensors.inside(tensor))
    )
    if there:
        return simulation.to(tensor, args[1:], kwargs)
    return func(*args, **kwargs)


def to_cuda(simulation: Simulation, args: Any, kwargs: Any) -> Any:
    from tensortrail.tracer.rehearsal import state

    device = kwargs.get("device", args[1] if len(args) > 1 else None)
    target = state.cuda(device)
    non_blocking = kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
    options = {"non_blocking": True} if non_blocking else {}
    tensor = args[0]
    if _asks_for_itself(tensor):
        return type(tensor).__torch_function__(Tensor.cuda, (type(tensor),), args, kwargs)
    if is_plain(type(tensor)) or isinstance(tensor, SimTensor):
        return simulation.to(tensor, (target,), options)
    return tensor.to(simulation.plain_devices((target,), {})[0][0], **options)


def _asks_for_itself(tensor: Any) -> bool:
    """A plain subclass on the CPU with a `__torch_function__`, which was not asked yet."""
    kind = type(tensor)
    if kind in OURS or not is_plain(kind) or kind.__torch_function__ is SILENT:
        return False
    return bool(torch._C._is_torch_function_enabled())


def _names_cuda(value: Any) -> bool:
    if isinstance(value, str):
        return value.startswith("cuda")
    if isinstance(value, torch.device):
        return bool(value.type == "cuda")
    return type(value) is int
