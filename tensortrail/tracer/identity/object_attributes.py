"""The attributes of any object, read without running code of its class."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any


def attributes_of(data: Any) -> Iterator[tuple[str, Any]]:
    """What the instance itself keeps; of a `UserDict`, its items."""
    own = _instance_dict(data)
    if isinstance(own.get("data"), dict) and issubclass(type(data), UserDict):
        own = own["data"]
    yield from ((str(name), value) for name, value in list(own.items()))


def _instance_dict(data: Any) -> dict[str, Any]:
    kind = type(data)
    if not kind.__dictoffset__ or issubclass(kind, (type, ModuleType, FunctionType)):
        return {}
    if any("__dict__" in vars(each) and _is_property(each) for each in kind.__mro__):
        return {}
    own = object.__getattribute__(data, "__dict__")
    return own if type(own) is dict else {}


def _is_property(kind: type) -> bool:
    """The class answers for `__dict__` by a function of its own."""
    return isinstance(vars(kind)["__dict__"], property)
