"""A device map that a library refused, as it says nothing of a part of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from traceback import walk_tb
from typing import Any

from torch.nn import Module

from tensortrail.tracer.identity.sites import LIBRARY, OWNERS
from tensortrail.tracer.identity.storages import Storages

MAP, MODEL = "device_map", "model"
MOST = 20


def incomplete_map(error: BaseException, _: Storages) -> dict[str, Any] | None:
    if not isinstance(error, ValueError) or "device" not in str(error):
        return None
    for frame, _line in walk_tb(error.__traceback__):
        given, model = frame.f_locals.get(MAP), frame.f_locals.get(MODEL)
        if OWNERS[frame.f_code.co_filename] != LIBRARY or not isinstance(given, Mapping):
            continue
        if isinstance(model, Module) and (parts := list(_unmapped(model, "", given))):
            return {
                "unmapped": parts[:MOST],
                "count": len(parts),
                "last": str(list(given.values())[-1]) if given else "",
                "number": bool(given) and type(list(given.values())[-1]) is int,
                "model": type(model).__name__,
            }
    return None


def _unmapped(module: Module, path: str, given: Mapping[Any, Any]) -> Iterator[str]:
    """The largest parts that no entry covers."""
    if path in given or next(iter(module.state_dict()), None) is None:
        return
    if path and not any(str(key).startswith(f"{path}.") for key in given):
        yield path
        return
    own = [*module._parameters, *module._buffers]
    names = (f"{path}.{name}".lstrip(".") for name in own)
    yield from (name for name in names if name not in given)
    for name, child in module.named_children():
        yield from _unmapped(child, f"{path}.{name}" if path else name, given)
