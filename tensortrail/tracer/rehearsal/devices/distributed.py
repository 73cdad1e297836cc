"""In distributed training gloo carries between processes what nccl would between GPUs."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tensortrail.tracer.rehearsal.devices import nccl_groups, sharded_random, works
from tensortrail.tracer.rehearsal.devices.nccl_groups import NCCL, Asked, asked_for
from tensortrail.tracer.rehearsal.lacks import note
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor
from tensortrail.tracer.rehearsal.tensor.wrapper_subclasses import says_where_it_is

NOTE = (
    'rehearsal: the process group asked for "nccl"; "gloo" carries its messages, so what only '
    "nccl does (its streams, its options, its timeouts) is not rehearsed"
)
CARRIED = "gloo carried the messages of nccl"
OPTIONS = ("backend_options", "pg_options")
DEVICE = "device_id"


def install(replaced: Replacements) -> None:
    if not torch.distributed.is_available():
        return
    from torch.distributed import distributed_c10d

    name = "_new_process_group_helper"
    helper = getattr(distributed_c10d, name)
    replaced.put(distributed_c10d, name, _over_gloo(helper, replaced))
    timeout = distributed_c10d.default_pg_timeout
    replaced.put(distributed_c10d, "default_pg_nccl_timeout", timeout)
    for module in (distributed_c10d, torch.distributed):
        replaced.put(module, "is_nccl_available", lambda: True)
    from torch.distributed import device_mesh

    for module in (distributed_c10d, torch.distributed, device_mesh):
        replaced.put(module, "split_group", _split(distributed_c10d.split_group))
    kind = torch.distributed.ProcessGroup
    replaced.put(kind, "_device_types", property(_device_types(kind._device_types)))
    verify = "_verify_params_across_processes"
    checked = nccl_groups.without_checks(getattr(torch.distributed, verify))
    replaced.put(torch.distributed, verify, checked)
    works.install(replaced)
    reducer = torch.distributed.Reducer
    replaced.put(torch.distributed, "Reducer", functools.partial(_made_on_the_device, reducer))
    replaced.put(reducer, "_rebuild_buckets", _rebuilt_on_the_device(reducer._rebuild_buckets))


def _over_gloo(helper: Callable[..., Any], replaced: Replacements) -> Callable[..., Any]:
    signature = inspect.signature(helper)

    @functools.wraps(helper)
    def new_group(*args: Any, **kwargs: Any) -> Any:
        from torch.distributed.distributed_c10d import BackendConfig
        from torch.distributed.tensor import DTensor

        says_where_it_is(DTensor, replaced)  # C++ makes it
        sharded_random.install(replaced)
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        name, backend = given["group_name"], given["backend"]
        asked_for.pop(name, None)
        config = BackendConfig(backend)
        if NCCL not in config.device_backend_map.values():
            given[DEVICE] = None
            return helper(*bound.args, **bound.kwargs)
        warnings.warn(NOTE, stacklevel=4)
        note(CARRIED)
        if any(given.get(option) is not None for option in OPTIONS):
            note("options of nccl are not rehearsed", certain=True)
        device = given.get(DEVICE)
        given.update(dict.fromkeys((*(each for each in OPTIONS if each in given), DEVICE)))
        given["backend"] = "gloo"
        group, store = helper(*bound.args, **bound.kwargs)
        if isinstance(group, torch.distributed.ProcessGroup):
            backends = config.device_backend_map
            asked_for[name] = Asked(backends, group.rank(), group.size(), store)
            _say_nccl(group, backend, store, device)
        return group, store

    return new_group


def _say_nccl(group: Any, backend: Any, store: Any, device: Any) -> None:
    """What a program hears of the group is what it asked for."""
    from torch.distributed import distributed_c10d

    world = distributed_c10d._world
    world.pg_map[group] = (backend, store)
    world.pg_backend_config[group] = str(distributed_c10d.BackendConfig(backend))
    if device is not None:
        group.bound_device_id = device


def _device_types(plain: Any) -> Callable[[Any], list[torch.device]]:
    def device_types(self: Any) -> list[torch.device]:
        asked = asked_for.get(self.group_name)
        found: list[torch.device] = plain.__get__(self)
        return found if asked is None else [torch.device(each) for each in asked.backends]

    return device_types


def _split(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Gloo cannot split a group, so each part is made anew."""

    @functools.wraps(plain)
    def split_group(
        parent_pg: Any = None,
        split_ranks: Any = None,
        timeout: Any = None,
        pg_options: Any = None,
        group_desc: Any = None,
        **rest: Any,
    ) -> Any:
        parent = parent_pg or torch.distributed.group.WORLD
        if parent.bound_device_id is None or parent.group_name not in asked_for:
            return plain(parent_pg, split_ranks, timeout, pg_options, group_desc, **rest)
        mine = next((ranks for ranks in split_ranks if parent.rank() in ranks), None)
        if mine is None:
            return None
        ranks = [torch.distributed.get_global_rank(parent, each) for each in mine]
        return torch.distributed.new_group(
            ranks, timeout, use_local_synchronization=True, group_desc=group_desc
        )

    return split_group


class OnTheDevice(TorchDispatchMode):  # type: ignore[misc]
    """The reducer of DistributedDataParallel asks in C++ where a parameter lies, and hears that
    it is on the CPU: what it makes there belongs on the simulated device."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self._device = torch.device("cuda", index)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if device is not None and device.type == "cpu" and not types:
            kwargs = {**kwargs, "device": self._device}
        return func(*args, **kwargs)


_indices: dict[int, int] = {}
"""Reducer -> its device."""


def _made_on_the_device(reducer: Any, parameters: Any, *args: Any, **kwargs: Any) -> Any:
    first = next((each for each in parameters if isinstance(each, SimTensor)), None)
    if first is None:
        made = reducer(parameters, *args, **kwargs)
        _indices.pop(id(made), None)
        return made
    with OnTheDevice(first.index):
        made = reducer(parameters, *args, **kwargs)
    _indices[id(made)] = first.index
    return made


def _rebuilt_on_the_device(rebuild: Callable[..., Any]) -> Callable[..., Any]:
    def rebuild_buckets(self: Any) -> Any:
        index = _indices.get(id(self))
        if index is None:
            return rebuild(self)
        with OnTheDevice(index):
            return rebuild(self)

    return rebuild_buckets
