"""A function that pickle cannot find again by its name, and where what is pickled refers to it."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from multiprocessing import reduction
from traceback import walk_tb
from types import FrameType, FunctionType
from typing import Any

import torch
from torch.nn import Module

from tensortrail.tracer.identity.object_attributes import attributes_of
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.callers import variable_for

FAILURES = (pickle.PicklingError, AttributeError, TypeError)
COMPILED = "_torchdynamo_orig_callable"
MOST_OBJECTS, DEEPEST = 5000, 12


def pickled_function(error: BaseException, _: Storages) -> dict[str, Any] | None:
    if not isinstance(error, FAILURES) or "pickle" not in str(error):
        return None
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    given = next(filter(None, map(_pickled, reversed(frames))), None)
    if given is None:
        return None
    starts, root = given
    for path, function in _functions(root, "", set(), 0):
        inner = getattr(function, COMPILED, function)
        code = getattr(inner, "__code__", None)
        name = variable_for(frames, root)
        return {
            "pickled function": path,
            "in": name or type(root).__name__,
            "known": bool(name),
            "module": isinstance(root, Module),
            "compiled": inner is not function,
            "called": str(getattr(inner, "__name__", "")),
            "defined": [code.co_filename, code.co_firstlineno] if code is not None else [],
            "starts": starts,
        }
    return None


def _pickled(frame: FrameType) -> tuple[bool, Any] | None:
    """What was given to the pickler, and whether a process is to be started with it."""
    if frame.f_code is reduction.dump.__code__:
        process = frame.f_locals.get("obj")
        own = getattr(process, "__dict__", {})
        return True, {**own.get("_kwargs", {}), **_named(own.get("_target"), own.get("_args", ()))}
    if frame.f_code is torch.serialization._save.__code__:
        return False, frame.f_locals.get("obj")
    return None


def _named(target: Any, given: Any) -> dict[str, Any]:
    """The arguments by the names of the parameters."""
    code = getattr(target, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    return {"target": target} | {
        names[at] if at < len(names) else str(at): each for at, each in enumerate(given)
    }


def _functions(value: Any, path: str, seen: set[int], depth: int) -> Iterator[tuple[str, Any]]:
    if id(value) in seen or depth > DEEPEST or len(seen) > MOST_OBJECTS:
        return
    seen.add(id(value))
    if type(value) is FunctionType:
        if not _is_found(value):
            yield path, value
        return
    for name, each in _below(value):
        yield from _functions(each, f"{path}.{name}" if path else name, seen, depth + 1)


def _below(value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if issubclass(kind, dict):
        yield from ((str(key), each) for key, each in list(dict.items(value)))
    elif issubclass(kind, (list, tuple, set, frozenset)):
        yield from ((str(at), each) for at, each in enumerate(list(value)))
    elif issubclass(kind, Module):
        yield from ((name, each) for name, each in value._modules.items())
        yield from ((name, each) for name, each in vars(value).items() if name != "_modules")
    elif not issubclass(kind, torch.Tensor):
        yield from attributes_of(value)


def _is_found(function: FunctionType) -> bool:
    """As pickle looks: by its name in its module."""
    found: Any = sys.modules.get(function.__module__ or "")
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is function
