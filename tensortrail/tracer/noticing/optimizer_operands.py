"""What an optimizer's step was given: the state or the gradient of which weight."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from torch.optim import Optimizer

from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.identity.variables import variables

GRADIENT = "gradient"
MOST_FRAMES = 60


def explain(operands: Sequence[dict[str, Any]], tensors: Sequence[Any], known: Storages) -> None:
    """Operands of a step that runs now get the weight that they belong to."""
    frames = list(_running())
    stepping = next(filter(None, map(_optimizer, frames)), None)
    if stepping is None:
        return
    facts = {"class": type(stepping).__name__, "names": list(_names(stepping, frames))}
    parts = {id(tensor): (key, weight) for key, weight, tensor in _parts(stepping)}
    for told, tensor in zip(operands, tensors, strict=True):
        key, weight = parts.get(id(tensor), ("", None))
        if weight is not None and (entry := known.known(weight)) is not None:
            told["optimizer"] = facts | {"part": key, "weight": entry.number}


def _running() -> Iterator[FrameType]:
    """The functions that run in this thread, the innermost first; without the one that asks,
    which would hold itself and all others."""
    frame: FrameType | None = sys._getframe(1).f_back
    while frame is not None:
        yield frame
        frame = frame.f_back


def _optimizer(frame: FrameType) -> Optimizer | None:
    method = frame.f_code.co_varnames[:1] == ("self",) and frame.f_code.co_name == "step"
    own = variables(frame).get("self") if method else None
    return own if isinstance(own, Optimizer) else None


def _names(optimizer: Optimizer, frames: Sequence[FrameType]) -> Iterator[str]:
    """What the user's functions call it, the outermost first."""
    users = [each for each in frames if OWNERS[each.f_code.co_filename] == USER]
    for frame in reversed(users[:MOST_FRAMES]):
        for names in (frame.f_globals, variables(frame)):
            yield from (name for name, value in list(names.items()) if value is optimizer)


def _parts(optimizer: Optimizer) -> Iterator[tuple[str, Any, Any]]:
    """Name, weight and tensor of everything that the optimizer keeps or reads for a weight."""
    for weight, state in optimizer.state.items():
        if isinstance(state, dict):
            yield from ((str(key), weight, value) for key, value in state.items())
    for group in optimizer.param_groups:
        yield from ((GRADIENT, weight, weight.grad) for weight in group["params"])
