"""This finds what keeps a tensor alive and what people call it: the list `history`."""

from __future__ import annotations

import gc
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection
from typing import Any

from tensortrail.tracer.identity.sites import user_frames
from tensortrail.tracer.identity.variables import variables

OWN = __name__.partition(".")[0]
MOST_NESTED = 3
CONTAINERS = (list, tuple, set, dict, OrderedDict, defaultdict, deque)


def keeper(tensor: Any, ours: Collection[int] = ()) -> str:
    """The list, dict, set or attribute that refers to the tensor; empty for plain variables.

    `ours` are the ids of containers that do not count, as whoever asks made them."""
    seen = {id(tensor), *ours}
    level: list[Any] = [tensor]
    for _ in range(MOST_NESTED):
        around: list[Any] = []
        for each in level:
            for holder in gc.get_referrers(each):
                if id(holder) in seen or holder is level or holder is around:
                    continue
                seen.add(id(holder))
                if named := _named(holder, each):
                    return named
                if type(holder) in CONTAINERS and not _is_namespace(holder):
                    around.append(holder)
        level = around
    return ""


def _named(holder: Any, inside: Any) -> str:
    """What people call the container, or the attribute that refers to what is inside."""
    if _is_namespace(holder):
        return ""
    if type(holder) in CONTAINERS and (name := _variable(holder)):
        return f"the {type(holder).__name__} `{name}`"
    owner, name = _attribute(holder, inside)
    return f"the attribute `{name}` of {owner}" if name else ""


def _variable(container: Any) -> str:
    """Its name in a frame of the user's that runs, or as an attribute."""
    for frame in user_frames(sys._getframe()):
        for names in (variables(frame), frame.f_globals):
            for name, value in names.items():
                if value is container:
                    return str(name)
    for holder in gc.get_referrers(container):
        owner, name = _attribute(holder, container)
        if name:
            return f"{owner}.{name}"
    return ""


def _attribute(holder: Any, value: Any) -> tuple[str, str]:
    """The class of the instance whose attribute the value is, and what the attribute is called.

    Its attributes refer to the value, or the instance itself as long as nobody asked for them."""
    owner = _owner(holder) if type(holder) is dict else holder
    kind = type(owner)
    if (
        owner is None
        or kind in CONTAINERS
        or kind.__module__.startswith((OWN, "torch", "builtins"))
    ):
        return "", ""
    try:
        namespace = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return "", ""
    names = namespace.items() if type(namespace) is dict else ()
    return kind.__name__, next((str(name) for name, each in names if each is value), "")


def _owner(namespace: dict[Any, Any]) -> Any:
    """The instance whose attributes these are."""
    for owner in gc.get_referrers(namespace):
        kind = type(owner)
        if kind is types.ModuleType or issubclass(kind, type):
            continue
        if getattr(owner, "__dict__", None) is namespace:
            return owner
    return None


def _is_namespace(holder: Any) -> bool:
    return type(holder) is dict and "__name__" in holder
