"""What a collective gives back lies on the simulated device that it was called for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.replacements import Replacements


def install(replaced: Replacements) -> None:
    kind = torch.distributed.Work
    replaced.put(kind, "get_future", _future(kind.get_future))
    replaced.put(kind, "result", _result(kind.result))
    group = torch.distributed.ProcessGroup
    for name in ("_start_coalescing", "_end_coalescing"):
        replaced.put(group, name, lambda self, device=None: None)  # gloo does one after the other


def _future(plain: Callable[..., Any]) -> Callable[..., Any]:
    def get_future(self: Any) -> Any:
        return plain(self).then(lambda done: on_devices(done.value()))

    return get_future


def _result(plain: Callable[..., Any]) -> Callable[..., Any]:
    def result(self: Any) -> Any:
        return on_devices(plain(self))

    return result


def on_devices(value: Any) -> Any:
    """Tensors of gloo's whose memory is a simulated device's, as those of that device."""
    simulation = state.current
    if isinstance(value, (list, tuple)):
        return type(value)(map(on_devices, value))
    if simulation is None or type(value) is not Tensor or value.layout is not torch.strided:
        return value
    index = simulation.memory.index_of(value.untyped_storage())
    return value if index is None else simulation.wrap(value, index)
