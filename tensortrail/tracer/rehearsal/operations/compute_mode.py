"""The dispatch mode of a rehearsal sees what is computed, whoever asked for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunction, _current_graph_task_id, _get_dispatch_mode
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode

from tensortrail.tracer.rehearsal.operations.ask_mode import FAKING, AskMode
from tensortrail.tracer.rehearsal.operations.computing import NO_TASK
from tensortrail.tracer.rehearsal.operations.simulation import TRACING, Simulation
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor, is_plain

EAGER = [
    getattr(torch._C.DispatchKey, name)
    for name in ("CompositeExplicitAutograd", "BackendSelect", "CUDA", "CPU")
]
ITSELF = ("flex_attention", "flex_attention_backward")
"""Operators around operators that make tensors themselves; others insist on no mode."""


class ComputeMode(TorchDispatchMode):  # type: ignore[misc]
    supports_higher_order_operators = True

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self.simulation = simulation

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # each call would cost more for it; `compiler/tracing.py` sees to that

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if _get_dispatch_mode(FAKING) is not None:
            return func(*args, **(kwargs or {}))  # sizes are asked for, not values
        if _get_dispatch_mode(TRACING) is not None:
            return self._traced(func, types, args, kwargs or {})
        for kind in types:
            if not issubclass(kind, SimTensor) and not is_plain(kind):
                return NotImplemented  # another wrapper unpacks itself; we see what is inside
        if isinstance(func, HigherOrderOperator):
            return self._made_of_operations(func, args, kwargs or {})
        if _current_graph_task_id() == NO_TASK or func.namespace != "aten":
            return self.simulation.run(func, args, kwargs or {})
        with DisableTorchFunction():  # in a backward pass modes see what we ask ourselves
            return self.simulation.run(func, args, kwargs or {})

    def _traced(self, func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """A graph is traced with values: torch's mode for that is asked first, for once."""
        tracing = torch._C._unset_dispatch_mode(TRACING)
        try:
            with self:
                return tracing.__torch_dispatch__(func, types, args, kwargs)
        finally:
            torch._C._set_dispatch_mode(tracing)

    def _made_of_operations(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        kernel = next(func.py_kernels[key] for key in EAGER if key in func.py_kernels)
        if func._name in ITSELF:
            with self, AskMode(self.simulation):
                return kernel(*args, **kwargs)

        def inside(body: Any) -> Any:
            def run(*given: Any, **options: Any) -> Any:
                with self, AskMode(self.simulation):
                    return body(*given, **options)

            return run if callable(body) and not isinstance(body, Tensor) else body

        return kernel(*map(inside, args), **{key: inside(each) for key, each in kwargs.items()})
