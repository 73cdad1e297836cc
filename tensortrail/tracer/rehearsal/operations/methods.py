"""`Tensor.to`, `Tensor.cuda` and the making of parameters know simulated devices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch._C import _is_torch_function_mode_enabled
from torch.nn import Parameter
from torch.overrides import handle_torch_function

from tensortrail.tracer.rehearsal.operations import short_moves
from tensortrail.tracer.rehearsal.operations.ask_mode import UNSHAPED
from tensortrail.tracer.rehearsal.operations.asked_moves import moved, to_cuda
from tensortrail.tracer.rehearsal.operations.simulation import Simulation, plain_data
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.answers import ANSWERS
from tensortrail.tracer.rehearsal.tensor.simulated import KNOWN, SimTensor, made, set_data
from tensortrail.tracer.watching.watched_functions import WATCHED, StandIn

Method = Callable[..., Any]


def install(simulation: Simulation, methods: Replacements) -> None:
    put = methods.put
    put(Tensor, "data", property(plain_data.__get__, set_data))
    put(Parameter, "__new__", _new_parameter(Parameter.__new__))
    to, to_gpu = Tensor.to, Tensor.cuda
    own_to, own_cuda = _to(simulation, to), _cuda(simulation, to_gpu)
    put(UNSHAPED, "_allowed_methods", [*UNSHAPED._allowed_methods, own_to, own_cuda])
    # Torch's C++ looks them up by name when a mode above has called the original.
    for own, plain in ((own_to, to), (own_cuda, to_gpu)):
        put(ANSWERS, own, ANSWERS[plain])
        put(WATCHED, own, StandIn(plain))
    put(Tensor, "to", own_to)
    put(SimTensor, "to", own_to)
    put(Tensor, "cuda", own_cuda)


def _to(simulation: Simulation, to: Method) -> Method:
    @functools.wraps(to)
    def tensor_to(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if _is_torch_function_mode_enabled():
            if len(args) == 1 and not kwargs:
                copied = short_moves.moved(simulation, to, self, args[0])
                if copied is not None:
                    return copied
            return handle_torch_function(to, (self,), self, *args, **kwargs)
        return moved(simulation, to, (self, *args), kwargs)

    return tensor_to


def _cuda(simulation: Simulation, to_gpu: Method) -> Method:
    @functools.wraps(to_gpu)
    def tensor_cuda(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if _is_torch_function_mode_enabled():
            return handle_torch_function(to_gpu, (self,), self, *args, **kwargs)
        return to_cuda(simulation, (self, *args), kwargs)

    return tensor_cuda


def _new_parameter(make: Method) -> Method:
    def new_parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        if type(data) in KNOWN.values():
            return made(cls, data, requires_grad)
        return make(cls, data, requires_grad)

    return new_parameter
