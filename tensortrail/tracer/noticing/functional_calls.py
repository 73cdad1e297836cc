"""A weight or buffer that `functional_call` was not given, so that the module's own was used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from torch.nn import Module

from tensortrail.tracer.identity.module_tensors import owned
from tensortrail.tracer.identity.sites import runs, user_frames

FILE, NAME = "torch/nn/utils/stateless.py", "_functional_call"


def explain(operands: Sequence[dict[str, Any]], tensors: Sequence[Any]) -> None:
    """Operands that the call left to the module get their name, and its line."""
    frame = _call_around(sys._getframe(1))
    if frame is None:
        return
    module, given = (frame.f_locals.get(key) for key in ("module", "parameters_and_buffers"))
    user = next(user_frames(frame), None)
    names = set(given) if isinstance(given, dict) else _of_all(given)
    if not isinstance(module, Module) or user is None:
        return
    own = {id(tensor): name for name, tensor in owned(module) if name not in names}
    for told, tensor in zip(operands, tensors, strict=True):
        if id(tensor) in own:
            told["left out"] = [own[id(tensor)], user.f_code.co_filename, user.f_lineno]


def _of_all(given: Any) -> set[str]:
    """Several dicts may be given, one after the other."""
    parts = given if isinstance(given, (list, tuple)) else ()
    return {name for part in parts if isinstance(part, dict) for name in part}


def _call_around(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not runs(frame, FILE, NAME):
        frame = frame.f_back
    return frame
