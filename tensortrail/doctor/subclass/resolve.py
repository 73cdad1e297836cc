"""From what was typed to something that makes instances."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from tensortrail.doctor.subclass.words import CannotMake

HOW = (
    "write a function without parameters that returns a new tensor of it, with other values each "
    "time, and pass it: --make module:function"
)


def maker(named: str, make: str = "") -> Callable[[], Any]:
    """Of `module:Class`, `module:factory()` or, with `make`, of `module:function`."""
    if make:
        return _function(make)
    if named.endswith("()"):
        return _function(named)
    found = look_up(named)
    if not isinstance(found, type):
        if callable(found):
            raise CannotMake(f"{named} is a function: write {named}() if it makes the tensor")
        raise CannotMake(f"{named} is a {type(found).__name__}, not a class")
    import torch

    if not issubclass(found, torch.Tensor):
        raise CannotMake(f"{named} is not a subclass of torch.Tensor")
    from tensortrail.doctor.subclass.families import known

    made = known(found)
    if made is None:
        raise CannotMake(f"how to make a {found.__qualname__} is not known here: {HOW}")
    return _checked(made, found)


def look_up(path: str) -> Any:
    """`package.module:Class.maker`; modules of the working directory can be named too."""
    module, colon, attributes = path.partition(":")
    if not colon or not module or not attributes:
        raise CannotMake(f"{path!r} is not of the form module:Class")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        raise CannotMake(f"{module} cannot be imported: {type(error).__name__}: {error}") from error
    for name in attributes.split("."):
        if not hasattr(found, name):
            raise CannotMake(f"{module} has no {attributes}")
        found = getattr(found, name)
    return found


def _function(path: str) -> Callable[[], Any]:
    found = look_up(path.removesuffix("()"))
    if not callable(found):
        raise CannotMake(f"{path} cannot be called")
    return lambda: _called(found, path)


def _checked(made: Callable[[], Any], kind: type) -> Callable[[], Any]:
    def make() -> Any:
        tensor = _called(made, f"the maker of {kind.__qualname__}")
        held = getattr(tensor, "data", tensor)
        if type(tensor) is not kind and type(held) is not kind:
            told = type(held).__qualname__
            raise CannotMake(f"the maker of {kind.__qualname__} gave a {told} here: {HOW}")
        return tensor

    return make


def _called(function: Callable[[], Any], name: str) -> Any:
    try:
        return function()
    except CannotMake:
        raise
    except Exception as error:
        line = (str(error).strip().splitlines() or [""])[0]
        raise CannotMake(f"{name} fails here: {type(error).__name__}: {line}") from error
