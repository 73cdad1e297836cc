"""Plain Python between two compiled graphs runs without our function mode: it would be a guard.

There simulated tensors ask for themselves, as subclasses may."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunctionSubclass
from torch.nn import Parameter

from tensortrail.tracer.rehearsal.operations.ask_mode import AskMode
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

OURS = {Tensor, Parameter}
SILENT = torch._C._disabled_torch_function_impl


class Between:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._lock = threading.Lock()
        self._threads = 0
        self._here = threading.local()

    def begins(self) -> None:
        """The mode of this thread is off from here on."""
        self._here.lifts = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)  # `torch.tensor(...)` moves what it made
        with self._lock:
            self._threads += 1
            SimTensor.__torch_function__ = classmethod(self._asked)

    def ends(self) -> None:
        torch._C._set_only_lift_cpu_tensors(self._here.lifts)
        with self._lock:
            self._threads -= 1
            if not self._threads:
                SimTensor.__torch_function__ = SILENT

    def _asked(self, kind: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not all(each in OURS or issubclass(each, SimTensor) for each in types):
            return NotImplemented
        here = self._here
        if getattr(here, "asking", False):
            with DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        here.asking = True
        try:
            with AskMode(self._simulation):
                return func(*args, **(kwargs or {}))
        finally:
            here.asking = False
