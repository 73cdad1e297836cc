"""A tensor with a graph that stood in the way of a copy: where it is kept."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from traceback import walk_tb
from typing import Any

import torch
from torch.nn import Module

from tensortrail.tracer.identity.assigned_lines import assigned_at
from tensortrail.tracer.identity.module_tensors import parts
from tensortrail.tracer.identity.object_attributes import attributes_of
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.callers import variable_for

REFUSED = "support the deepcopy protocol"
MOST_HELD, DEEPEST = 1000, 3


def copied_graph(error: BaseException, storages: Storages) -> dict[str, Any] | None:
    if not isinstance(error, RuntimeError) or REFUSED not in str(error):
        return None
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    copied = [each.f_locals.get("x") for each in frames if each.f_code is copy.deepcopy.__code__]
    tensor = copied[-1] if copied else None
    if not isinstance(tensor, torch.Tensor):
        return None
    name, owner, key, path = _kept(copied[0], tensor)
    root = variable_for(frames, copied[0]) or type(copied[0]).__name__
    entry = storages.entry(tensor)
    return {
        "copied graph": f"{root}{'.' * (path[:1] not in ('', '['))}{path}",
        "of": type(copied[0]).__name__,
        "tensor": entry.number if entry is not None else 0,
        "assigned": list(assigned_at(owner, name) or ()) if owner is not None else [],
        "whole": key,
        "norm": _norm(owner, name),
    }


def _kept(root: Any, tensor: Any) -> tuple[str, Any, bool, str]:
    """The attribute that refers to the tensor, whose it is, whether it is the tensor itself, and
    the path from what was copied."""
    owners = parts(root) if isinstance(root, Module) else [("", root)]
    for prefix, owner in owners:
        held = attributes_of(owner) if not isinstance(owner, Module) else vars(owner).items()
        for name, value in list(held):
            for below in _at(value, tensor, DEEPEST):
                return name, owner, not below, ".".join(filter(None, (prefix, name))) + below
    for below in _at(root, tensor, DEEPEST):
        return "", None, not below, below
    return "", None, False, ""


def _at(value: Any, tensor: Any, deep: int) -> Iterator[str]:
    """Where in a plain container: `["hidden"][0]`."""
    if value is tensor:
        yield ""
    elif deep and type(value) in (dict, list, tuple):
        pairs = value.items() if type(value) is dict else enumerate(value)
        for key, each in list(pairs)[:MOST_HELD]:
            yield from (f"[{key!r}]{below}" for below in _at(each, tensor, deep - 1))


def _norm(owner: Any, name: str) -> str:
    """The hook that computes the weight of this name before each call: an old weight or spectral
    normalization."""
    hooks = vars(owner).get("_forward_pre_hooks", {}) if isinstance(owner, Module) else {}
    for hook in hooks.values():
        if type(hook).__module__.startswith("torch.nn.utils") and vars(hook).get("name") == name:
            return type(hook).__name__
    return ""
