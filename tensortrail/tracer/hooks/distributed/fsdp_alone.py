"""Whether FSDP2 runs no code but torch's in a step of its own, and none that the mode would act on:
then the mode is of no use meanwhile, and would see some hundred calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import ref

from torch._C import DisableTorchFunction
from torch.nn import Module

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.inner_tensors import PLAIN


def changes_alone(_: Recorder, group: Any) -> bool:
    """Whether no code of others runs when parameters are put into their modules, and none of them
    is frozen by it."""
    with DisableTorchFunction():
        for each in group.fsdp_params:
            info, gathered = each._module_info, getattr(each, "_unsharded_param", None)
            if gathered is None or gathered.requires_grad != each.sharded_param.requires_grad:
                return False
            for module in (info.module, *info.shared_modules):
                if type(module).__setattr__ is not Module.__setattr__:
                    return False
    return True


def only_copies(recorder: Recorder, params: Any) -> bool:
    """Whether what was gathered is copied out. Not at the first time, when that makes the storages,
    and not along another dimension, where it makes copies to be put together. An audit wants to see
    who writes."""
    return recorder.last_writers is None and all(
        each.all_gather_outputs and not each.fsdp_placement.dim for each in params
    )


def gathers_alone(recorder: Recorder, params: Iterable[Any], comm: Any, allocate: ref[Any]) -> bool:
    """Whether these parameters are gathered as they are, into memory that `allocate` gives. It is
    referred to weakly: at the end, whoever else has a wrapper is a module that took it."""
    return _nobody_asks(recorder, comm, allocate) and all(map(_is_as_it_is, params))


def reduces_alone(recorder: Recorder, group: Any, allocate: ref[Any]) -> bool:
    """Whether plain gradients are reduced as they are, into memory that `allocate` gives."""
    return (
        _nobody_asks(recorder, getattr(group, "_reduce_scatter_comm", None), allocate)
        and group.reduce_grads
        and getattr(group, "_all_reduce_hook", None) is None
        and not getattr(group, "reduce_scatter_unused_params", False)
        and getattr(group.mesh_info, "shard_mesh_size", 1) > 1  # one rank copies
        and all(map(_is_reduced_as_it_is, group.fsdp_params))
    )


def _nobody_asks(recorder: Recorder, comm: Any, allocate: ref[Any]) -> bool:
    """No fresh memory that may be read, no audit, no simulated devices, no memory of others."""
    return (
        recorder.last_writers is None
        and not recorder.fresh_memory.some
        and recorder.of_thread.lower is None
        and getattr(type(comm), "allocate", None) is allocate()
    )


def _is_as_it_is(param: Any) -> bool:
    return (
        param.param_dtype is None
        and not param.offload_to_cpu
        and type(param._sharded_local_tensor) in PLAIN
    )


def _is_reduced_as_it_is(param: Any) -> bool:
    if not _is_as_it_is(param) or param.reduce_dtype is not None:
        return False
    with DisableTorchFunction():
        gathered = getattr(param, "_unsharded_param", None)
        given = gathered.grad if gathered is not None else None
        hooks = getattr(param.sharded_param, "_post_accumulate_grad_hooks", None)
    return not hooks and (given is None or type(given) in PLAIN)
