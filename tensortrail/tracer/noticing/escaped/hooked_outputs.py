"""The output of a module with a backward hook that was changed in place."""

from __future__ import annotations

from collections.abc import Iterator
from traceback import walk_tb
from typing import Any

from torch.nn import Module

from tensortrail.tracer.identity.module_tensors import parts
from tensortrail.tracer.identity.sites import OURS, OWNERS
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.callers import variable_for

REFUSED = ("BackwardHookFunction", "modified inplace")
MOST = 20


def hooked_output(error: BaseException, _: Storages) -> dict[str, Any] | None:
    if not isinstance(error, RuntimeError) or not all(each in str(error) for each in REFUSED):
        return None
    running = list(_running(error))
    if not running:
        return None
    root = running[0]
    names = {id(each): path for path, each in parts(root)}
    hooked = [path for path, each in parts(root) if each._backward_hooks]
    inner, frames = running[-1], [frame for frame, _ in walk_tb(error.__traceback__)]
    return {
        "hooked": hooked[:MOST],
        "changes": names.get(id(inner), ""),
        "kind": type(inner).__name__,
        "flag": vars(inner).get("inplace") is True,
        "model": variable_for(frames, root) or type(root).__name__,
    }


def _running(error: BaseException) -> Iterator[Module]:
    """The modules whose `forward` the exception left, the outermost first."""
    for frame, _ in walk_tb(error.__traceback__):
        own = frame.f_locals.get("self")
        if OWNERS[frame.f_code.co_filename] != OURS and isinstance(own, Module):
            yield own
