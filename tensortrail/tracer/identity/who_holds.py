"""This finds who still holds a storage that should have gone. It is costly, so it is rare.

What people have a name for is called by it; of the rest, the kind of object is said."""

from __future__ import annotations

import gc
import types
from typing import Any

import torch

from tensortrail.tracer.identity.inner_tensors import PLAIN, key_of
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.identity.who_keeps import keeper

MOST_TENSORS = 5
MOST_LOOKS = 3


def holders(entries: list[Entry]) -> list[str]:
    """Descriptions of what refers to tensors on these storages."""
    wanted = {entry.key for entry in entries}
    if not wanted:
        return []
    found: list[str] = []
    with torch._C.DisableTorchFunction():
        tensors = [
            thing for thing in gc.get_objects() if type(thing) in PLAIN and key_of(thing) in wanted
        ]
    looked_at = tensors[:MOST_TENSORS]
    ours = {id(tensors), id(looked_at)}
    for tensor in looked_at:
        if named := keeper(tensor, ours):
            found.append(named)
            continue
        for referrer in gc.get_referrers(tensor):
            if id(referrer) not in ours and not isinstance(referrer, types.FrameType):
                text = _described(referrer, tensor)
                if text and text not in found:
                    found.append(text)
    if not tensors:
        found.append("no Python object: autograd's graph or a C++ container")
    elif not found:
        found.append("a local variable or autograd's graph")
    return list(dict.fromkeys(found))[:MOST_TENSORS]


def _described(referrer: Any, tensor: Any) -> str:
    if isinstance(referrer, dict):
        key = next((key for key, value in referrer.items() if value is tensor), None)
        owner = _owner(referrer) if key is not None else ""
        return f"{owner}[{key!r}]" if owner else ""
    if isinstance(referrer, (list, tuple, set)):
        return f"a {type(referrer).__name__} of {len(referrer)} items"
    if isinstance(referrer, types.CellType):
        return "a closure"
    return f"a {type(referrer).__name__}"


def _owner(namespace: dict[Any, Any]) -> str:
    for owner in gc.get_referrers(namespace):
        if isinstance(owner, types.ModuleType):
            return f"the globals of {owner.__name__}"
        if type(owner) in PLAIN and "inner" in namespace:
            return ""  # a simulated tensor, of which the same is asked
        if getattr(owner, "__dict__", None) is namespace:
            return f"an instance of {type(owner).__name__}"
        if isinstance(owner, dict) and isinstance(owner.get("_parameters"), dict):
            return "a module's parameters"
    return "a dict"
