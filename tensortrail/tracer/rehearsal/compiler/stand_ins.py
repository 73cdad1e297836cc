"""Stand-ins without values: what the compiler and `FakeTensorMode` make of simulated tensors.

Torch's own stand-in of a GPU's tensor is on the GPU for C++ too. There is none in this build, and
autograd ends the process. Ours are on a CPU beside the host's for C++, and say `cuda` to Python:
how torch hands devices on and refuses their mixes is as on a machine with GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import functional_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.proxy_tensor import PythonKeyTracer

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.operations import autocast
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.type_names import dtype_named

plain_device = FakeTensor.device


def install(simulation: Simulation, replaced: Replacements) -> None:
    plain_normalized = FakeTensor._normalize_fake_device

    def device(fake: FakeTensor) -> torch.device:
        return shown(plain_device.__get__(fake))

    def normalized(device: torch.device) -> torch.device:
        if device == state.SURELY_HOST:
            return state.HOST
        index = simulation.index_of(device)
        return plain_normalized(device) if index is None else state.to_torch(index)

    for name, answer in {
        "device": property(device, plain_device.__set__),
        "is_cuda": property(lambda fake: fake.device.type == "cuda"),
        "is_cpu": property(lambda fake: fake.device.type == "cpu"),
        "get_device": lambda fake: -1 if fake.device.index is None else fake.device.index,
        "_normalize_fake_device": staticmethod(normalized),
    }.items():
        replaced.put(FakeTensor, name, answer)
    _modes_see_devices(replaced)
    _graphs_name_devices(replaced)
    _kernels_are_those_of_the_host(replaced)


def _modes_see_devices(replaced: Replacements) -> None:
    dispatch = FakeTensorMode.dispatch

    def shown_dispatch(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if kwargs and (device := kwargs.get("device")) is not None:
            kwargs = {**kwargs, "device": shown(device)}
        return dispatch(mode, func, types, args, kwargs or {})

    replaced.put(FakeTensorMode, "dispatch", shown_dispatch)
    # As on a machine where there is a GPU to trace for, and none to make constants on.
    replaced.put(FakeTensorMode, "avoid_device_init", property(lambda mode: True))


def _graphs_name_devices(replaced: Replacements) -> None:
    write_argument = PythonKeyTracer.create_arg

    def create_arg(tracer: Any, value: Any) -> Any:
        if isinstance(value, torch.device):
            value = state.SURELY_HOST if value == state.HOST else shown(value)
        return write_argument(tracer, value)

    replaced.put(PythonKeyTracer, "create_arg", create_arg)


def _kernels_are_those_of_the_host(replaced: Replacements) -> None:
    """Without a kernel an operation is taken apart; this build has none for a GPU."""
    plain, host = proxy_tensor.autograd_would_have_decomposed, torch.empty(0)

    def taken_apart(func: Any, values: Any) -> Any:
        first = next((each for each in values if isinstance(each, Tensor)), None)
        on_gpu = first is not None and first.device.type == "cuda"
        return plain(func, [host] if on_gpu else values)

    for owner in (proxy_tensor, functional_tensor):
        replaced.put(owner, "autograd_would_have_decomposed", taken_apart)


def shown(device: torch.device) -> torch.device:
    index = state.from_torch(device)
    return device if index is None else torch.device("cuda", index)


def meant(value: Any) -> Any:
    """A device as C++ shall have it; anything else as it is."""
    if type(value) is int or isinstance(value, (str, torch.device)):
        index = state.required().index_of(value)
        return value if index is None else state.to_torch(index)
    return value


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A call while stand-ins are computed with."""
    rewritten = REWRITTEN.get(func)
    if func in FROM_VALUES and kwargs.get("device") is not None:
        return _made_on_host(func, args, **kwargs)
    if rewritten is not None:
        func, args, kwargs = rewritten(*args, **kwargs)
    elif kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": meant(kwargs["device"])}
    return autocast.run(func, args, kwargs)


def _to(tensor: Tensor, *rest: Any, **kwargs: Any) -> Any:
    if "device" in kwargs:
        kwargs["device"] = meant(kwargs["device"])
    elif rest and not isinstance(rest[0], (Tensor, torch.dtype)):
        rest = (meant(rest[0]), *rest[1:])
    return TO, (tensor, *rest), kwargs


def _cuda(tensor: Tensor, device: Any = None, non_blocking: bool = False, **_: Any) -> Any:
    return TO, (tensor, meant(state.cuda(device))), {"non_blocking": non_blocking}


def _type(tensor: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None or isinstance(dtype, torch.dtype) or "cuda" not in str(dtype):
        return TYPE, (tensor, *(() if dtype is None else (dtype, non_blocking))), {}
    return TO, (tensor, meant(state.cuda()), dtype_named(dtype)), {"non_blocking": non_blocking}


def _made_on_host(
    func: Any, args: Any, device: Any, requires_grad: bool = False, **kwargs: Any
) -> Any:
    """From values C++ makes tensors of the host, and moves them to no other CPU."""
    made = TO(func(*args, **kwargs), meant(device))
    return made.requires_grad_() if requires_grad else made


FROM_VALUES = (torch.tensor, torch.as_tensor, torch.asarray)
TO, CUDA, TYPE = Tensor.to, Tensor.cuda, Tensor.type
"""As torch has them: while a rehearsal is on, others stand there."""
REWRITTEN: dict[Any, Callable[..., Any]] = {TO: _to, CUDA: _cuda, TYPE: _type}
