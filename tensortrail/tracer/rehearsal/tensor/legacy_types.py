"""`torch.cuda.FloatTensor`, its like and the default tensor type work on simulated devices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

NAMES = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")


class _Kind(type):
    dtype: torch.dtype
    plain: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, SimTensor) and instance.dtype == cls.dtype

    def __call__(cls, *args: Any, **_: Any) -> Any:
        simulation = state.required()
        given = tree_map_only(SimTensor, lambda each: each.inner, args)
        return simulation.moved(cls.plain(*given), simulation.device)


def install(simulation: Simulation, replaced: Replacements) -> None:
    for name in (f"{kind}Tensor" for kind in NAMES):
        plain: Any = getattr(torch, name)
        words = {"__module__": "torch.cuda", "plain": plain, "dtype": plain.dtype}
        replaced.put(torch.cuda, name, _Kind(name, (), words))
    plain_set = torch._C._set_default_tensor_type

    def set_default(kind: Any) -> None:
        if isinstance(kind, _Kind):
            torch.set_default_dtype(kind.dtype)
            torch.set_default_device("cuda")
        else:
            forget_default_device()
            plain_set(kind)

    replaced.put(torch._C, "_set_default_tensor_type", set_default)


def from_values(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Sparse tensors of given indices and values, `x.new_tensor`: built in C++ on the host."""
    simulation = state.required()
    given = [each for each in (*args, *kwargs.values()) if isinstance(each, SimTensor)]
    asked = kwargs.get("device")
    if asked is None and not given:
        asked = default_device()
    index = given[-1].index if given else None
    if asked is not None:
        index = simulation.index_of(asked)
    if index is None and not given:
        return func(*args, **kwargs)
    options = {**kwargs, "device": "cpu"}
    args, options = tree_map_only(SimTensor, lambda each: each.inner, (args, options))
    wants_grad = options.pop("requires_grad", False)
    made = func(*args, **options)
    return (made if index is None else simulation.moved(made, index)).requires_grad_(wants_grad)


def default_device() -> Any:
    """What `torch.tensor(...)` without a device lies on; None for the host."""
    return torch.utils._device.CURRENT_DEVICE


def forget_default_device() -> None:
    """A default that is a simulated device does not outlive the rehearsal."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    if context is not None and context.device.type == "cuda":
        torch.set_default_device(None)


def made_on_host(func: Any, args: Any, kwargs: dict[str, Any]) -> Tensor:
    """A factory without its device, whatever the default is."""
    made: Tensor = func(*args, **{**kwargs, "device": "cpu"})
    return made
