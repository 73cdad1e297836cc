"""Gradients that the program's own autograd functions return, and the device they are on."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd.function import BackwardCFunction

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.looking import looking_after
from tensortrail.tracer.identity.inner_tensors import device_of
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.noticing.escaped.foreign_gradients import RETURNED, Returned
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch.autograd"
MOST = 20


def install(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(BackwardCFunction, "apply", looking_after(recorder, _returned))
    recorder.at_close.append(RETURNED.clear)


def _returned(_: Recorder, result: Any, node: Any, *grads: Any) -> None:
    given, gave = _devices(grads), _devices(result if isinstance(result, tuple) else (result,))
    own = node._forward_cls
    code = getattr(own.backward, "__code__", None)
    if len(given) != 1 or gave <= given or code is None or OWNERS[code.co_filename] != USER:
        return
    told = Returned(
        own.__name__, code.co_filename, code.co_firstlineno, given.pop(), sorted(gave)[0]
    )
    if told not in RETURNED and len(RETURNED) < MOST:
        RETURNED.append(told)


def _devices(values: Any) -> set[str]:
    return {str(device_of(each)) for each in values if isinstance(each, Tensor)}
