"""Packages without what their `__init__` imports, where a fix is in one module of many."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from types import ModuleType


def stand_for(packages: Sequence[str], unneeded: Sequence[str] = ()) -> None:
    """Each package finds its modules but imports none; what is unneeded, and is not there or is
    a module of these packages, has a class of any name."""
    for name in packages:
        if name not in sys.modules and (folders := _folders(name)):
            _empty(name).__path__ = folders
    for name in unneeded:
        if name not in sys.modules and ("." in name or not find_spec(name)):
            _empty(name).__getattr__ = _some_class


def _some_class(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})


def _empty(name: str) -> ModuleType:
    outer, _, inner = name.rpartition(".")
    module = sys.modules[name] = ModuleType(name)
    if outer in sys.modules:
        setattr(sys.modules[outer], inner, module)
    return module


def _folders(name: str) -> list[str]:
    """None of a package that was not there at the time of the fix."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return []
    return list(spec.submodule_search_locations or ()) if spec else []
