"""A plain move in a rehearsal goes past torch's function modes, where all of them are ours: to hand
a call from one mode to the next takes longer than to do it."""

from __future__ import annotations

import sys
from typing import Any

from torch._C import DisableTorchFunction, _get_function_stack_at, _len_torch_function_stack

from tensortrail.tracer.rehearsal.operations import plain_moves
from tensortrail.tracer.rehearsal.operations.ask_mode import AskMode
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.tensor.simulated import SimParameter, SimTensor
from tensortrail.tracer.watching.mode import TrailMode
from tensortrail.tracer.watching.plain_moves import moved as noted

SIMULATED = (SimTensor, SimParameter)
NO_OPTIONS: dict[str, Any] = {}


def moved(simulation: Simulation, func: Any, tensor: Any, device: Any) -> Any:
    """What the modes that are on would make of `func(tensor, device)`, a call of `Tensor.to` two
    frames above; None where one of them is the program's, or where it may be more than a copy."""
    modes = _len_torch_function_stack()
    if modes > 2 or type(_get_function_stack_at(0)) is not AskMode:
        return None
    if modes == 1:
        with DisableTorchFunction():
            return plain_moves.moved(simulation, tensor, (device,), NO_OPTIONS)
    mode = _get_function_stack_at(1)
    if type(mode) is not TrailMode or not mode.recorder.short_ways:
        return None
    recorder = mode.recorder
    with DisableTorchFunction():
        try:
            made = plain_moves.moved(simulation, tensor, (device,), NO_OPTIONS)
        except Exception as error:
            recorder.failures.saw(func, (tensor, device), {}, error)
            raise
        if made is None:
            return None
        # The trail asks for bytes alone: it gets the tensors of the host that hold them.
        source = tensor.inner if type(tensor) in SIMULATED else tensor
        result = made.inner if type(made) in SIMULATED else made
        try:  # as `guarded` would, which takes longer to call
            noted(recorder, func, (source, device), NO_OPTIONS, result, sys._getframe(2))
        except Exception as error:
            recorder.trouble(error)
    return made
