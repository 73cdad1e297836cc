"""`torch.compile`: the class is taken apart into plain tensors and put together again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tensortrail.doctor.subclass import looks
from tensortrail.doctor.subclass.probe import DoesNotApply, Probe, Subject, Wrong
from tensortrail.doctor.subclass.words import Verdict

USE, ORDER = "torch.compile", 6


def _compiled(function: Callable[..., Any], *inputs: torch.Tensor) -> Any:
    if len(looks.PLAIN) > 2:
        raise DoesNotApply("a simulated device compiles nothing")
    torch._dynamo.reset()
    try:
        with _untraced():
            return torch.compile(function, backend="aot_eager", fullgraph=True)(*inputs)
    finally:
        torch._dynamo.reset()


@contextmanager
def _untraced() -> Iterator[None]:
    """Where the compiler's own log is read (by pytest it is), it prints every tensor it handles,
    which not every class can bear."""
    log = logging.getLogger("torch.__trace")
    readers, log.handlers = log.handlers, []
    try:
        yield
    finally:
        log.handlers = readers


def _cloned(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    subject.same(_compiled(lambda weight: weight.clone(), tensor), wanted)


def _linear(subject: Subject) -> None:
    tensor = subject.tensor()
    if tensor.dim() != 2 or not tensor.dtype.is_floating_point:
        raise DoesNotApply("it is not a matrix of floating point numbers")
    activations = torch.ones(2, tensor.shape[1], dtype=tensor.dtype, device=tensor.device)
    try:
        with torch.no_grad():
            eager = torch.nn.functional.linear(activations, tensor)
    except Exception as error:
        raise DoesNotApply(f"F.linear fails without compile too: {error}") from None
    with torch.no_grad():
        got = _compiled(torch.nn.functional.linear, activations, tensor)
    if type(got) is not type(eager):
        raise Wrong(Verdict.WRONG_TYPE, f"gives a {type(got).__qualname__}")
    one, other = (each if type(each) in looks.PLAIN else looks.plain(each) for each in (got, eager))
    if one is not None and other is not None and not looks.close(one, other):
        raise Wrong(Verdict.WRONG_VALUES, "gives other numbers than without compile")


PROBES = [
    Probe("compiled clone()", _cloned, "a compiled region cannot take or give the weight"),
    Probe("compiled F.linear", _linear, "a compiled model cannot use the weight"),
]
